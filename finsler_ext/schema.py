"""What parameters and fitted attributes may hold: one declaration for `fit`, `save` and `load`.

    PARAMETERS = {"omega_norm": number("[0, 1)") | one_of("auto")}

    @saved(n_parts=whole("[1, inf)"), reason=TEXT, slope=number(nan=True))
    class Islands(NamedTuple): ...

A field says what a value may be, in words and as a test. Letters in shapes and ranges are sizes:
all arrays of an object that mention n agree about it, and an index in "[0, n)" points to a row.
`finsler_ext.load` checks every object of a file by its declaration before anything is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse

Class = TypeVar("Class", bound=type)


@dataclass
class Scope:
    """Sizes of one object, by their letters, and the scopes of the objects that it holds."""

    sizes: dict[str, int] = field(default_factory=dict)
    inner: dict[int, Scope] = field(default_factory=dict)

    def agrees(self, letters: Iterable[str], sizes: Iterable[int]) -> bool:
        """Whether the letters stand for these sizes; new letters do from now on."""
        return all(
            size == (int(letter) if letter.isdigit() else self.sizes.setdefault(letter, size))
            for letter, size in zip(letters, sizes, strict=True)
        )


@dataclass(frozen=True)
class Field:
    """What a value may be: in words, and as a test."""

    words: str
    holds: Callable[[Any, Scope], bool]
    optional: bool = False

    def __or__(self, other: Field) -> Field:
        def either(value, scope: Scope) -> bool:
            for choice in (self, other):
                trial = Scope(dict(scope.sizes), scope.inner)
                if choice.holds(value, trial):
                    scope.sizes.update(trial.sizes)
                    return True
            return False

        return Field(f"{self.words} or {other.words}", either)

    def check(self, name: str, value, scope: Scope | None = None) -> None:
        if not self.holds(value, Scope() if scope is None else scope):
            raise ValueError(f"{name} must be {self.words}, got {_shown(value)}.")


class Range(NamedTuple):
    """Numbers between two ends, which are numbers or the letters of sizes."""

    low: str
    high: str
    with_low: bool
    with_high: bool

    @classmethod
    def of(cls, text: str) -> Range:
        """From "[0, 1)", as in a book."""
        found = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", text)
        assert found is not None, text
        return cls(found[2], found[3], found[1] == "[", found[4] == "]")

    def __str__(self) -> str:
        if (self.low, self.high, self.with_high) == ("-inf", "inf", False):
            return ""
        if self.high == "inf" and not self.with_high:
            return f" {'≥' if self.with_low else '>'} {self.low}"
        return f" in {'(['[self.with_low]}{self.low}, {self.high}{')]'[self.with_high]}"

    def holds(self, lowest, highest, scope: Scope) -> bool:
        sizes = scope.sizes
        low, high = (sizes[e] if e in sizes else float(e) for e in (self.low, self.high))
        above = lowest > low or (self.with_low and lowest == low)
        return bool(above and (highest < high or (self.with_high and highest == high)))


ANY_NUMBER = "(-inf, inf)"
NONE = Field("None", lambda value, scope: value is None)
TEXT = Field("text", lambda value, scope: isinstance(value, str))
FLAG = Field("True or False", lambda value, scope: isinstance(value, (bool, np.bool_)))
CALLABLE = Field("a function", lambda value, scope: callable(value))


# Compiled code holds integers up to this.
LARGEST_WHOLE = 2**63


def _is_number(value, types: tuple[type, ...]) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, types):
        return False
    return not isinstance(value, int) or abs(value) < LARGEST_WHOLE


def number(text: str = ANY_NUMBER, *, nan: bool = False) -> Field:
    """A number in a range; "(0, inf)" leaves out infinity and "(0, inf]" does not."""
    span = Range.of(text)

    def holds(value, scope: Scope) -> bool:
        if not _is_number(value, (int, float, np.integer, np.floating)):
            return False
        return nan if value != value else span.holds(value, value, scope)

    return Field(f"a number{span}", holds)


def whole(text: str = ANY_NUMBER, *, size: str = "") -> Field:
    """An integer; neither 2.0 nor True is one, as in scikit-learn. It may be a size."""
    span = Range.of(text)

    def holds(value, scope: Scope) -> bool:
        in_range = _is_number(value, (int, np.integer)) and span.holds(value, value, scope)
        return in_range and (not size or scope.agrees([size], [int(value)]))

    return Field(f"an integer{span}", holds)


def one_of(*choices: str) -> Field:
    known = ", ".join(map(repr, choices))
    words = known if len(choices) == 1 else f"one of {known}"
    return Field(words, lambda value, scope: isinstance(value, str) and value in choices)


def instance(*types: type) -> Field:
    words = " or ".join(f"a {cls.__name__}" for cls in types)
    return Field(words, lambda value, scope: isinstance(value, types))


# Parameters that all estimators have; `Space.check_drift` knows the range of drifts.
SEED = NONE | whole("[0, 4294967295]") | instance(np.random.RandomState)
DRIFT = number() | one_of("auto")
RIDGE = number("[0, inf]") | one_of("auto")
SPACE = TEXT | Field("a Space", lambda value, scope: hasattr(value, "check_drift"))
JOBS = NONE | whole()
VERBOSE = FLAG | whole("[0, inf)")
WIDTH = whole("[1, 10000]")


def listed(item: Field, *, least: int = 0) -> Field:
    def holds(value, scope: Scope) -> bool:
        found = isinstance(value, (list, tuple)) and len(value) >= least
        return found and all(item.holds(part, scope) for part in value)

    return Field(f"a list of {item.words}", holds)


def settings(words: str = "a dict", /, **known: Field) -> Field:
    """A dict by name; names that are not known may have any plain value."""
    plain = NONE | TEXT | FLAG | number("[-inf, inf]") | instance(list, tuple, dict, np.ndarray)

    def holds(value, scope: Scope) -> bool:
        return isinstance(value, dict) and all(
            isinstance(name, str) and known.get(name, plain).holds(item, scope)
            for name, item in value.items()
        )

    return Field(words, holds)


def known_settings(known: dict[str, Field]) -> Field:
    """A dict of values by names, and of no other names."""
    fits = settings(**known)
    return Field(
        "a dict of settings by their names",
        lambda value, scope: fits.holds(value, scope) and set(value) <= set(known),
    )


METRIC_OPTIONS = NONE | settings("a dict of options by name, p > 0", p=number("(0, inf]"))


def array(types: str, shape: str, text: str = ANY_NUMBER, *, nan: bool = False) -> Field:
    """An array of one of the types ("f4 f8"), with a shape ("n m") and entries in a range."""
    span, letters = Range.of(text), shape.split()

    def holds(value, scope: Scope) -> bool:
        return (
            isinstance(value, np.ndarray)
            and _has_type(value, types)
            and value.ndim == len(letters)
            and scope.agrees(letters, value.shape)
            and _within(value, span, scope, nan)
        )

    return Field(f"an array of {types} of shape ({', '.join(letters)}), entries{span}", holds)


def sparse(types: str, shape: str, text: str = ANY_NUMBER, *, nan: bool = False) -> Field:
    """A csr matrix; that its indices fit its shape is checked when it is decoded."""
    span, letters = Range.of(text), shape.split()

    def holds(value, scope: Scope) -> bool:
        return (
            scipy.sparse.issparse(value)
            and value.format == "csr"
            and value.indices.dtype.kind == value.indptr.dtype.kind == "i"
            and _has_type(value, types)
            and scope.agrees(letters, value.shape)
            and _within(value.data, span, scope, nan)
        )

    return Field(f"a csr matrix of {types} of shape ({', '.join(letters)})", holds)


def array_like(shape: str = "") -> Field:
    """Whatever `numpy.asarray` makes an array of numbers of."""
    letters = shape.split()

    def holds(value, scope: Scope) -> bool:
        if not isinstance(value, (list, tuple)) and not hasattr(value, "__array__"):
            return False
        made = np.asarray(value)
        sizes = made.shape
        if made.dtype.kind not in "iufO":
            return False
        return not letters or (len(sizes) == len(letters) and scope.agrees(letters, sizes))

    return Field(f"an array of shape ({', '.join(letters)})" if shape else "an array", holds)


SCALE = NONE | array_like("n")


def names(shape: str) -> Field:
    """Names of rows or columns."""

    def holds(value, scope: Scope) -> bool:
        found = isinstance(value, np.ndarray) and value.dtype.kind in "OUiuf"
        return found and value.ndim == 1 and scope.agrees([shape], value.shape)

    return Field(f"names of shape ({shape},)", holds)


def part(*classes: str, **sizes: str) -> Field:
    """An object of one of these classes; ``n="k"`` says that its n is k here."""

    def holds(value, scope: Scope) -> bool:
        if name_of(type(value)) not in classes:
            return False
        inner = scope.inner.get(id(value), Scope()).sizes
        known = {letter: here for letter, here in sizes.items() if letter in inner}
        return scope.agrees(known.values(), (inner[letter] for letter in known))

    return Field(f"a {' or '.join(classes)}", holds)


def maybe(wanted: Field) -> Field:
    """An attribute that only some objects have."""
    return replace(wanted, optional=True)


class Schema(NamedTuple):
    """The fields of a class, and what else must hold between them."""

    fields: dict[str, Field]
    relations: Callable[[dict[str, Any]], None] | None = None

    def check_names(self, name: str, given: Iterable[str]) -> None:
        for unknown in sorted(set(given) - set(self.fields)):
            raise ValueError(
                f"{name}.{unknown} has no line in what is declared by @saved, next to the class"
            )
        for wanted, declared in self.fields.items():
            if not declared.optional and wanted not in given:
                raise ValueError(f"{name}.{wanted} is missing")

    def check(self, name: str, state: dict[str, Any], scope: Scope) -> None:
        """Refuse what no object of this class holds."""
        self.check_names(name, state)
        for attribute, declared in self.fields.items():
            if attribute in state:
                declared.check(f"{name}.{attribute}", state[attribute], scope)
        if self.relations is not None:
            self.relations(state)


_CLASSES: dict[str, type] = {}
_SCHEMAS: dict[type, Schema] = {}


def saved(
    declared: dict[str, Field] | None = None, *, name: str = "", relations=None, **fields: Field
) -> Callable[[Class], Class]:
    """Declare what a model file keeps of a class."""

    def declare(cls: Class) -> Class:
        known = name or cls.__name__
        assert known not in _CLASSES, known
        _CLASSES[known], _SCHEMAS[cls] = cls, Schema({**(declared or {}), **fields}, relations)
        return cls

    return declare


def name_of(cls: type) -> str | None:
    """What a file calls a class; None if it may not hold it."""
    return next((name for name, known in _CLASSES.items() if known is cls), None)


def saved_class(name) -> type:
    try:
        return _CLASSES[name]
    except (KeyError, TypeError):
        raise ValueError(f"it names a class {name!r} that this version does not know") from None


def schema_of(cls: type) -> Schema:
    return _SCHEMAS[cls]


def check_parameters(model) -> None:
    """Type, range and finiteness of all parameters, before anything is computed."""
    for name, wanted in model._parameters.items():
        wanted.check(name, getattr(model, name))


def _has_type(value, types: str) -> bool:
    return any(value.dtype == np.dtype(text) for text in types.split())


def _within(values: np.ndarray, span: Range, scope: Scope, nan: bool) -> bool:
    if values.size == 0 or values.dtype.kind not in "fiu":
        return True
    if values.dtype.kind == "f" and not nan and np.isnan(values).any():
        return False
    lowest, highest = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    return bool(np.isnan(lowest)) or span.holds(lowest, highest, scope)


def _shown(value) -> str:
    if scipy.sparse.issparse(value) or isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
