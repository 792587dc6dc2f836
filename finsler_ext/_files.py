"""Files that are whole or untouched: written beside their place, then put there in one step."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path) -> Iterator[Path]:
    """A file to write to, which takes the place of ``path`` when the block ends without an error.

    After an error, a full disk or Ctrl-C, ``path`` is what it was before. Links are followed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(folder + "/a.txt") as file:
    ...         _ = file.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    try:
        with _beside(path) as file:
            yield file
    except OSError as error:
        if error.errno and error.filename is None:  # a full disk does not say which file it was for
            error.filename = os.fspath(path)
        raise


@contextmanager
def _beside(path) -> Iterator[Path]:
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device has nothing to lose
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, f"made{Path(path).suffix}")
            yield made
            with open(made, "rb") as whole, open(target, "wb") as file:
                shutil.copyfileobj(whole, file)
        return
    # The ending stays: matplotlib and numpy go by it.
    beside = target.with_name(f".finsler_{secrets.token_hex(8)}{target.suffix}")
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield beside
        if target.exists():
            shutil.copymode(target, beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def encodable(text: str) -> str:
    """Text that UTF-8 can hold: halves of characters (lone surrogates) become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
