"""Values as JSON and arrays, and back, with their types.

None, booleans, whole numbers, text and finite floats are themselves. Everything else is an object
whose "is" says what it is. Arrays are put aside by ``keep`` and named in the JSON. Objects are
checked by the declaration of their class, when they are written and before they are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from finsler_ext.io.state import class_named, get_state, name_in_files, set_state
from finsler_ext.schema import Scope, array, schema_of, settings, whole
from finsler_ext.validation import checked_structure

NO_CODE = "a file holds data and no code"
# The state of numpy's generator: compiled code reads it without a look.
MERSENNE = settings(key=array("u4 i8", "624", "[0, 4294967295]"), pos=whole("[0, 624]"))


class Encoder:
    """Turn values into JSON; ``keep`` stores an array and returns the name it has in the file."""

    def __init__(self, keep: Callable[[np.ndarray], str]):
        self._keep = keep
        self._arrays: dict[int, tuple[np.ndarray, str]] = {}
        self._numbers: dict[int, tuple[Any, int]] = {}
        self._scopes: dict[int, Scope] = {}

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
        if kind is dict:
            items = [
                [self.encode(k, path), self.encode(v, f"{path}[{k!r}]")] for k, v in value.items()
            ]
            return {"is": "dict", "items": items}
        return self._encode_other(value, path)

    def _encode_other(self, value, path: str) -> dict:
        if scipy.sparse.issparse(value):
            return self._sparse(value, path)
        name = None if isinstance(value, type) else name_in_files(type(value))
        if name is not None:
            return self._object(value, name, path)
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            item = self.encode(value.item(), path)
            return {"is": "scalar", "dtype": value.dtype.str, "value": item}
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            return {"is": "RandomState", "state": self.encode(state, path)}
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
        matrix = matrix.tocsr()
        parts = ("data", "indices", "indptr")
        return {
            "is": "sparse",
            "container": "array" if isinstance(matrix, scipy.sparse.sparray) else "matrix",
            "shape": list(matrix.shape),
            "parts": {p: self._array(np.asarray(getattr(matrix, p)), path) for p in parts},
        }

    def _object(self, value, name: str, path: str) -> dict:
        if id(value) in self._numbers:
            return {"is": "same", "number": self._numbers[id(value)][1]}
        number = len(self._numbers)
        self._numbers[id(value)] = (value, number)
        state, schema = get_state(value), schema_of(type(value))
        # In the order of the declaration: that of the attributes depends on how a model was made.
        order = [key for key in schema.fields if key in state]
        state = {key: state[key] for key in dict.fromkeys([*order, *state])}
        encoded = {
            key: self.encode(part, f"{path}.{key}" if path else key) for key, part in state.items()
        }
        scope = self._scopes[id(value)] = Scope(inner=self._scopes)
        schema.check(name, state, scope)
        return {"is": "object", "class": name, "number": number, "state": encoded}


class Decoder:
    """Turn JSON back into values; ``fetch`` returns the array of a name."""

    def __init__(self, fetch: Callable[[str], np.ndarray]):
        self._fetch = fetch
        self._arrays: dict[str, np.ndarray] = {}
        self._objects: dict[int, Any] = {}
        self._scopes: dict[int, Scope] = {}

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
        items, shape = self._items(value), tuple(value["shape"])
        if math.prod(shape) != len(items):
            raise ValueError("the shape of an array does not fit its items")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)

    def _sparse(self, value):
        cls = {"array": scipy.sparse.csr_array, "matrix": scipy.sparse.csr_matrix}
        stored = tuple(self.decode(value["parts"][p]) for p in ("data", "indices", "indptr"))
        if any(part.dtype.kind != "i" for part in stored[1:]):
            raise ValueError("the indices of a sparse matrix are no integers")
        made = cls[value["container"]](stored, shape=tuple(value["shape"]))
        checked_structure(made, "it")
        # The arrays themselves, as wide as they were: compiled code is made for one width, and
        # two matrices share what they shared.
        made.data, made.indices, made.indptr = stored
        return checked_structure(made, "it")

    def _dict(self, value) -> dict:
        return {self.decode(k): self.decode(v) for k, v in value["items"]}

    def _scalar(self, value):
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biufU":
            raise ValueError(f"it holds a number of an unknown type, {dtype}")
        item = self.decode(value["value"])
        if isinstance(item, bool) != (dtype.kind == "b"):
            raise ValueError(f"it holds {item!r} as a number of the type {dtype}")
        return dtype.type(item)

    def _object(self, value):
        cls = class_named(value["class"])
        state = {key: self.decode(part) for key, part in value["state"].items()}
        scope = Scope(inner=self._scopes)
        schema_of(cls).check(value["class"], state, scope)
        made = set_state(cls, state)
        self._objects[value["number"]], self._scopes[id(made)] = made, scope
        return made

    def _same(self, value):
        if type(value["number"]) is not int:
            raise ValueError("it refers to an object without a number")
        return self._objects[value["number"]]

    def _random_state(self, value):
        made = np.random.RandomState()
        state = self.decode(value["state"])
        MERSENNE.check("RandomState", state["state"])
        made.set_state(state)
        return made


_READERS: dict[str, Callable[[Decoder, dict], Any]] = {
    "RandomState": Decoder._random_state,
    "array": Decoder._array,
    "dict": Decoder._dict,
    "float": lambda self, value: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[
        value["value"]
    ],
    "list": Decoder._items,
    "object": Decoder._object,
    "objects": Decoder._names,
    "same": Decoder._same,
    "scalar": Decoder._scalar,
    "sparse": Decoder._sparse,
    "tuple": lambda self, value: tuple(self._items(value)),
}
