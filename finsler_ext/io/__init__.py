"""Fitted models as files: arrays and JSON, without pickle and without code.

``model.save("cells.finsler")`` writes one file and ``finsler_ext.load("cells.finsler")`` reads it,
under any supported version of Python, numpy, numba, umap-learn and openTSNE.

codec.py   values as JSON and arrays, and back
state.py   what of an object is written, and what is made anew when it is read
models.py  save and load; the file is a zip archive of npy files with checksums

What an object of a file may hold is declared next to its class, by `finsler_ext.schema.saved`.
"""

from finsler_ext.io.models import SaveMixin, load, read, save

__all__ = ["SaveMixin", "load", "read", "save"]
