"""Labels: written as they were read, and as numbers only to choose colours by."""

from __future__ import annotations

import numpy as np

from finsler_ext.cli.header import is_number

__all__ = ["colors_of", "label_values"]

# float64 tells whole numbers up to this from their neighbours.
MOST_EXACT = 2**53


def label_values(cells) -> np.ndarray:
    """Numbers of an array of numbers, and otherwise text as it is.

    Whole numbers that an array holds as floats become integers, as far as floats are exact.
    """
    array = np.asarray(cells)
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "f":
        exact = np.isfinite(array).all() and (np.abs(array) <= MOST_EXACT).all()
        return array.astype(np.int64) if exact and (array == np.round(array)).all() else array
    texts = [_text(cell) for cell in (cells if array.dtype.kind in "OT" else array.tolist())]
    return np.array(texts, dtype=object)


def _text(cell) -> str:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return "" if type(cell).__name__ in ("NAType", "NaTType") else str(cell)


def colors_of(label: np.ndarray) -> np.ndarray:
    """Numbers if every label is written as one, names otherwise.

    007 and a number of 19 digits are names: as numbers they would not be told from 7 and from
    their neighbours.
    """
    if label.dtype.kind != "O":
        return label
    if all(_is_amount(text) for text in label):
        return label_values(label.astype(float))
    return np.array([text or "(none)" for text in label])


def _is_amount(text: str) -> bool:
    digits = text.lstrip("+-")
    padded = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return is_number(text) and not padded and abs(float(text)) <= MOST_EXACT
