"""``python -m finsler_ext`` is the ``finsler-ext`` command."""

import sys

if __name__ == "__main__":
    try:
        from finsler_ext.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
