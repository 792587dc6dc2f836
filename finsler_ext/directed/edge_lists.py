"""Edge lists: which columns are source, target and length, and what duplicates mean.

Columns are known by their names, in any order. What is not known is an error that says what was
found: a list read the wrong way round gives a picture that is wrong everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import scipy.sparse

from finsler_ext.directed.data import DirectedData, check_values, directed_data
from finsler_ext.neighbors.geodesics import shortest_edges

# Names of the two ends of an edge; other columns are to be named by the caller.
SOURCES = ("source", "from", "tail", "u", "origin", "pre")
TARGETS = ("target", "to", "head", "v", "destination", "post")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


COSTS = _set(
    "weight cost costs length distance dist time minutes hours seconds duration km miles metres "
    "meters travel_time dissimilarity price"
)
STRENGTHS = _set(
    "count counts n num number strength strengths synapses synapse probability prob p frequency "
    "clicks visits trips flow traffic volume similarity affinity correlation passengers messages"
)
# Things that are counted: the only column besides the ends is not a length then.
COUNTED = _set(
    "wins victories votes citations cites links mentions likes retweets calls mails emails "
    "contacts interactions occurrences views hits transactions transfers trade exports imports "
    "migrants movers commuters tourists"
)


def _words(name) -> str:
    """Lower case, with an underscore between words: "sourceID" is "source_id"."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\s_\-.]+", "_", parted).lower()


def _is_strength(name) -> bool:
    """Whether a name says that more is closer: "n_synapses" does, "n_minutes" does not."""
    words = set(_words(name).split("_"))
    return bool(words & (STRENGTHS | COUNTED)) and not words & (COSTS - {"weight"})


def _is_length(name) -> bool:
    return bool(set(_words(name).split("_")) & (COSTS | STRENGTHS)) or _words(name) in COSTS


def is_nameless(name) -> bool:
    """A column of row numbers, as pandas writes and reads it."""
    return isinstance(name, str) and (not name.strip() or name.startswith("Unnamed:"))


def find_ends(columns, source=None, target=None) -> tuple[Hashable, Hashable] | None:
    """The columns of sources and of targets, given or by their names; None if there are none.

    Two columns that could both be the source are an error.
    """
    columns, found = list(columns), []
    for role, given, words in (("source", source, SOURCES), ("target", target, TARGETS)):
        if given is not None and given not in columns:
            raise ValueError(f"{role}={given!r} is not a column; there are {_quoted(columns)}.")
        fitting = [given] if given is not None else [c for c in columns if _words(c) in words]
        if len(fitting) > 1:
            raise ValueError(
                f"{_quoted(fitting)} could all be the {role} of an edge. Say which one is: "
                f"finsler_ext.read_directed(data, {role}={fitting[0]!r})."
            )
        found.append(fitting[0] if fitting else None)
    if found[0] is None or found[1] is None:
        if source is not None or target is not None:
            role = "target" if found[1] is None else "source"
            raise ValueError(
                f"No column is known to be the {role} of an edge among {_quoted(columns)}. Say "
                f"which one is: {role}=..."
            )
        return None
    if found[0] == found[1]:
        raise ValueError(f"source and target are both the column {found[0]!r}.")
    return found[0], found[1]


def choose_length(columns, weight=None, values: str | None = None, *, lone: bool = True):
    """The column of lengths (or strengths) among those that are not ends; None if there is none.

    ``weight`` and ``values`` are as in `finsler_ext.read_directed`. ``lone`` takes a single column
    whatever its name; otherwise only one with a known name.
    """
    columns = [name for name in columns if not is_nameless(name)]
    if weight is not None:
        if weight not in columns:
            raise ValueError(f"weight={weight!r} is not a column; there are {_quoted(columns)}.")
        chosen = weight
    elif len(columns) == 1 and lone:
        chosen = columns[0]
    else:
        known = [c for c in columns if _is_length(c)]
        if not known and (not columns or not lone):
            return None
        if len(known) != 1:
            raise ValueError(
                f"The length of an edge could be any of {_quoted(known or columns)}. Say which "
                f"one it is: finsler_ext.read_directed(data, weight={(known or columns)[0]!r})."
            )
        chosen = known[0]
    if values is None and _is_strength(chosen):
        raise ValueError(
            f"{chosen!r} looks like a strength (the more, the closer), but lengths are costs (the "
            "more, the further). Say which it is: finsler_ext.read_directed(data, "
            "values='strength') or values='cost'."
        )
    return chosen


def _quoted(names) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def read_columns(
    columns: Mapping, *, source=None, target=None, weight=None, values: str | None = None
) -> DirectedData:
    """Sparse directed distances and node names of an edge list given by its columns."""
    check_values(values)
    ends = find_ends(columns, source, target)
    if ends is None:
        raise ValueError(
            f"Columns {_quoted(columns)}: none is known as the source and none as the target of an "
            "edge. Name them source and target (or from and to, tail and head, ...), or say which "
            "they are: finsler_ext.read_directed(data, source=..., target=...)."
        )
    others = [c for c in columns if c not in ends]
    length = choose_length(others, weight, values)
    sources, targets = (read_names(columns[end], end) for end in ends)
    numbers = np.ones(len(sources)) if length is None else _lengths(columns[length], length)
    kind = "length" if values in (None, "cost") else values.rstrip("s")
    taken = [f"source = {ends[0]}", f"target = {ends[1]}"]
    taken += [] if length is None else [f"{kind} = {length}"]
    return edge_data(sources, targets, numbers, values=values, how=", ".join(taken))


def read_names(values, column) -> list:
    """Names as Python objects; whole floats are integers, missing names are an error."""
    names = values.tolist() if hasattr(values, "tolist") else list(values)
    for row, name in enumerate(names):
        part = isinstance(name, float) and not name.is_integer()
        if name is None or is_missing(name) or part or (isinstance(name, str) and name == ""):
            raise ValueError(
                f"Edge {row + 1} has {name!r} as {column!r}; every edge needs a source and a "
                "target, and numbers of nodes must be whole."
            )
    return [int(name) if isinstance(name, float) else name for name in names]


def is_missing(cell) -> bool:
    """Whether it is pandas' mark of what is missing, which equals nothing."""
    return type(cell).__name__ in ("NAType", "NaTType")


def _lengths(values, column) -> np.ndarray:
    try:
        known = [np.nan if value is None or is_missing(value) else value for value in values]
        return np.array(known, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"Column {column!r} must hold the lengths of edges as numbers.") from None


def ordered_names(names) -> list:
    """Sorted; whole numbers as numbers, also where they are text; as met if they cannot be."""
    met = list(dict.fromkeys(names))
    try:
        if all(isinstance(name, str) for name in met):
            return sorted(met, key=int)
        return sorted(met)
    except ValueError:
        return sorted(met)
    except TypeError:
        return met


def edge_data(
    sources: Sequence[Hashable],
    targets: Sequence[Hashable],
    numbers,
    names: Sequence[Hashable] | None = None,
    *,
    values: str | None = None,
    how: str = "",
) -> DirectedData:
    """Directed distances from edges, absent pairs being unknown, and the names of the rows.

    Of several edges between the same two nodes the cheapest counts, or the sum of their
    strengths. Lengths of nan or inf are no edges; edges from a node to itself are left out.

    Examples
    --------
    >>> edge_data(["b", "b", "a"], ["a", "a", "c"], [3.0, 2.0, 1.0]).distances.toarray()
    array([[0., 0., 1.],
           [2., 0., 0.],
           [0., 0., 0.]])
    """
    names = ordered_names([*sources, *targets]) if names is None else list(names)
    if not names:
        raise ValueError("There are neither nodes nor edges.")
    place = {name: row for row, name in enumerate(names)}
    row = np.fromiter((place[name] for name in sources), dtype=np.int64, count=len(sources))
    column = np.fromiter((place[name] for name in targets), dtype=np.int64, count=len(targets))
    numbers = _lengths(numbers, "length")
    negative = np.flatnonzero(numbers < 0)
    if negative.size:
        edge = negative[0]
        raise ValueError(
            f"The length of an edge must be a number ≥ 0, got {float(numbers[edge])!r} on "
            f"{sources[edge]!r} → {targets[edge]!r}."
        )
    known = np.isfinite(numbers)
    row, column, numbers = row[known], column[known], numbers[known]
    shape = (len(names), len(names))
    if values in ("strength", "transitions"):
        summed = scipy.sparse.csr_array((numbers, (row, column)), shape=shape)
        return directed_data(summed, names, values, how)
    proper = row != column
    cheapest = shortest_edges(row[proper], column[proper], numbers[proper], shape)
    return directed_data(cheapest, names, values, how)
