"""Values as JSON and arrays, and back, with their types.

None, booleans, whole numbers, text and finite floats are themselves. Everything else is an object
whose "is" says what it is. Arrays are put aside by ``keep`` and named in the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from finsler_ext.construct.input import checked_structure
from finsler_ext.io import parts
from finsler_ext.io.names import class_named, name_of

__all__ = ["Decoder", "Encoder"]

# Parts of sparse matrices, by format.
SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}
NO_CODE = "a file holds data and no code"


class Encoder:
    """Turn values into JSON; ``keep`` stores an array and returns the name it has in the file."""

    def __init__(self, keep: Callable[[np.ndarray], str]):
        self._keep = keep
        self._arrays: dict[int, tuple[np.ndarray, str]] = {}
        self._numbers: dict[int, tuple[Any, int]] = {}

    def encode(self, value, path: str) -> Any:
        """JSON of a value; ``path`` is what error messages call it."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            finite = math.isfinite(value)
            return value if finite else {"is": "float", "value": repr(value)}
        kind = type(value)
        if kind in (list, tuple):
            items = [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return {"is": kind.__name__, "items": items}
        if kind in (set, frozenset):
            items = [self.encode(v, path) for v in sorted(value)]
            return {"is": kind.__name__, "items": items}
        if kind is dict:
            items = [
                [self.encode(k, path), self.encode(v, f"{path}[{k!r}]")] for k, v in value.items()
            ]
            return {"is": "dict", "items": items}
        if kind is slice:
            return {"is": "slice", "items": [value.start, value.stop, value.step]}
        return self._encode_other(value, path)

    def _encode_other(self, value, path: str) -> dict:
        if scipy.sparse.issparse(value):
            return self._sparse(value, path)
        name = None if isinstance(value, type) else name_of(type(value))
        if name is not None and isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = {f: self.encode(getattr(value, f), f"{path}.{f}") for f in value._fields}
            return {"is": "named tuple", "class": name, "fields": fields}
        if name is not None:
            return self._object(value, name, path)
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            item = self.encode(value.item(), path)
            return {"is": "scalar", "dtype": value.dtype.str, "value": item}
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return self._random(value, path)
        if isinstance(value, np.dtype) or (isinstance(value, type) and _is_dtype(value)):
            return {"is": "dtype", "type": isinstance(value, type), "value": np.dtype(value).str}
        if callable(value):
            raise ValueError(
                f"{path}: a function cannot be saved, because {NO_CODE}. Use a metric with a name, "
                "or metric='precomputed'; set callbacks to None; or keep the model with joblib."
            )
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(f"{path}: a masked array cannot be saved. Pass a plain array.")
        if hasattr(value, "__array__"):  # also pandas' containers, and memory maps
            return self._array(np.asarray(value), path)
        raise ValueError(
            f"{path}: a {type(value).__name__} cannot be saved, because {NO_CODE}. Pass numbers, "
            "text or arrays, or keep the model with joblib."
        )

    def _array(self, array: np.ndarray, path: str) -> dict:
        if array.dtype.kind in "OT":  # names
            items = [self.encode(v, path) for v in array.ravel().tolist()]
            return {"is": "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in "biufcUSMm":
            raise ValueError(f"{path}: an array of {array.dtype} cannot be saved.")
        known = self._arrays.get(id(array))
        if known is None:
            known = self._arrays[id(array)] = (array, self._keep(array))  # kept alive: id is unique
        return {"is": "array", "file": known[1]}

    def _sparse(self, matrix, path: str) -> dict:
        if matrix.format not in SPARSE_PARTS:
            matrix = matrix.tocsr()
        return {
            "is": "sparse",
            "format": matrix.format,
            "container": "array" if isinstance(matrix, scipy.sparse.sparray) else "matrix",
            "shape": list(matrix.shape),
            "parts": {
                p: self._array(np.asarray(getattr(matrix, p)), path)
                for p in SPARSE_PARTS[matrix.format]
            },
        }

    def _object(self, value, name: str, path: str) -> dict:
        if id(value) in self._numbers:
            return {"is": "same", "number": self._numbers[id(value)][1]}
        number = len(self._numbers)
        self._numbers[id(value)] = (value, number)
        state = {
            key: self.encode(part, f"{path}.{key}" if path else key)
            for key, part in parts.taken_apart(value).items()
        }
        return {"is": "object", "class": name, "number": number, "state": state}

    def _random(self, value, path: str) -> dict:
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            return {"is": "RandomState", "state": self.encode(state, path)}
        return {"is": "Generator", "state": self.encode(value.bit_generator.state, path)}


class Decoder:
    """Turn JSON back into values; ``fetch`` returns the array of a name."""

    def __init__(self, fetch: Callable[[str], np.ndarray]):
        self._fetch = fetch
        self._arrays: dict[str, np.ndarray] = {}
        self._objects: dict[int, Any] = {}

    def decode(self, value) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, dict) or not isinstance(value.get("is"), str):
            raise ValueError("its description of a value has no type")
        kind = value["is"]
        if kind in _READERS:
            return _READERS[kind](self, value)
        raise ValueError(f"it holds a value of an unknown type, {kind!r}")

    def _items(self, value) -> list:
        return [self.decode(item) for item in value["items"]]

    def _array(self, value) -> np.ndarray:
        name = value["file"]
        if name not in self._arrays:
            self._arrays[name] = self._fetch(name)
        return self._arrays[name]

    def _names(self, value) -> np.ndarray:
        array = np.empty(tuple(value["shape"]), dtype=object)
        items = self._items(value)
        if len(items) != array.size:
            raise ValueError("the shape of an array does not fit its items")
        for place, item in enumerate(items):
            array.flat[place] = item
        return array

    def _sparse(self, value):
        form = value["format"]
        held = {p: self.decode(value["parts"][p]) for p in SPARSE_PARTS[form]}
        if form == "coo":
            stored = (held["data"], (held["row"], held["col"]))
        else:
            stored = (held["data"], held["indices"], held["indptr"])
        cls = getattr(scipy.sparse, f"{form}_{_container(value['container'])}")
        made = checked_structure(cls(stored, shape=tuple(value["shape"])))
        if form != "coo":  # as wide as they were: compiled code is made for one width
            # the arrays themselves, so that two matrices share what they shared
            made.data, made.indices, made.indptr = stored
        return made

    def _dict(self, value) -> dict:
        return {self.decode(k): self.decode(v) for k, v in value["items"]}

    def _scalar(self, value):
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biufU":
            raise ValueError(f"it holds a number of an unknown type, {dtype}")
        return dtype.type(self.decode(value["value"]))

    def _dtype(self, value):
        dtype = np.dtype(value["value"])
        return dtype.type if value["type"] else dtype

    def _named_tuple(self, value):
        cls: Any = class_named(value["class"])
        if not issubclass(cls, tuple) or not hasattr(cls, "_fields"):
            raise ValueError(f"{value['class']} is no named tuple")
        fields = {name: self.decode(field) for name, field in value["fields"].items()}
        return cls(**{name: field for name, field in fields.items() if name in cls._fields})

    def _object(self, value):
        cls = class_named(value["class"])
        state = {key: self.decode(part) for key, part in value["state"].items()}
        self._objects[value["number"]] = made = parts.put_together(cls, state)
        return made

    def _random_state(self, value):
        made = np.random.RandomState()
        made.set_state(self.decode(value["state"]))
        return made

    def _generator(self, value):
        state = self.decode(value["state"])
        names = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
        if state["bit_generator"] not in names:
            raise ValueError("it holds an unknown random generator")
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)


_READERS: dict[str, Callable[[Decoder, dict], Any]] = {
    "Generator": Decoder._generator,
    "RandomState": Decoder._random_state,
    "array": Decoder._array,
    "dict": Decoder._dict,
    "dtype": Decoder._dtype,
    "float": lambda self, value: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[
        value["value"]
    ],
    "frozenset": lambda self, value: frozenset(self._items(value)),
    "list": Decoder._items,
    "named tuple": Decoder._named_tuple,
    "object": Decoder._object,
    "objects": Decoder._names,
    "same": lambda self, value: self._objects[value["number"]],
    "scalar": Decoder._scalar,
    "set": lambda self, value: set(self._items(value)),
    "slice": lambda self, value: slice(*value["items"]),
    "sparse": Decoder._sparse,
    "tuple": lambda self, value: tuple(self._items(value)),
}


def _container(name) -> str:
    if name not in ("array", "matrix"):
        raise ValueError(f"it holds an unknown kind of sparse matrix, {name!r}")
    return name


def _is_dtype(cls: type) -> bool:
    return issubclass(cls, np.generic)
