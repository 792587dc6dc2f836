"""``python -m finsler_ext`` is the ``finsler-ext`` command."""

import sys

from finsler_ext.cli import main

sys.exit(main())
