"""Fitted models as files: arrays and JSON, without pickle and without code.

``model.save("cells.finsler")`` writes one file and ``finsler_ext.load("cells.finsler")`` reads it,
under any supported version of Python, numpy, numba, umap-learn and openTSNE.

codec.py      values as JSON and arrays, and back
names.py      the classes a file may name
parts.py      what of an object is written, and what is made anew when it is read
container.py  the file itself: a zip archive of npy files with checksums
models.py     save and load
"""

from finsler_ext.io.models import SaveMixin, load, read, save

__all__ = ["SaveMixin", "load", "read", "save"]
