"""Edge lists: which columns are source, target and length, and what duplicates mean.

Columns are known by their names, in any order. What is not known is an error that says what was
found: a list read the wrong way round gives a picture that is wrong everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import scipy.sparse

__all__ = [
    "WEIGHTS",
    "check_weights",
    "choose_length",
    "edge_matrix",
    "find_ends",
    "ordered_names",
    "path_lengths",
    "read_columns",
]

# What the numbers on edges are: a cost of going from source to target; a strength (the more, the
# closer: synapses, clicks, counts); or transition probabilities, whose rows sum to 1.
WEIGHTS = ("cost", "strength", "transitions")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


SOURCES = _set("source src from tail u i origin orig pre start sender departure citing")
TARGETS = _set("target tgt dst to head v j destination dest post end receiver arrival cited")
# "source_id" and "from node" mean what "source" and "from" mean.
SUFFIXES = _set("id ids node nodes name code key vertex index station city")
COSTS = _set(
    "weight cost costs length distance dist time minutes hours seconds duration km miles metres "
    "meters travel_time dissimilarity price"
)
STRENGTHS = _set(
    "count counts n num number strength strengths synapses synapse probability prob probabilities "
    "p frequency freq clicks click hits views visits trips flow flows traffic volume similarity "
    "similarities affinity correlation likelihood occurrences citations passengers messages "
    "emails calls transitions"
)
# Rows of a transition matrix may miss a sum of 1 by this much (float32 sums of many entries).
STOCHASTIC_TOLERANCE = 1e-3


def check_weights(weights: str | None) -> None:
    if weights is not None and weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {WEIGHTS}, got {weights!r}.")


def _words(name) -> str:
    """Lower case, with an underscore between words: "sourceID" is "source_id"."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\s_\-.]+", "_", parted).lower()


def _is_strength(name) -> bool:
    """Whether a name says that more is closer: "n_synapses" does, "n_minutes" does not."""
    words = set(_words(name).split("_"))
    return bool(words & STRENGTHS) and not words & (COSTS - {"weight"})


def _is_length(name) -> bool:
    return bool(set(_words(name).split("_")) & (COSTS | STRENGTHS)) or _words(name) in COSTS


def _is_nameless(name) -> bool:
    """A column of row numbers, as pandas writes and reads it."""
    return isinstance(name, str) and (not name.strip() or name.startswith("Unnamed:"))


def _is_end(name, words: frozenset) -> bool:
    word, _, rest = _words(name).partition("_")
    return word in words and (not rest or rest in SUFFIXES)


def find_ends(columns, source=None, target=None) -> tuple[Hashable, Hashable] | None:
    """The columns of sources and of targets, given or by their names; None if there are none.

    Two columns that could both be the source are an error.
    """
    columns = list(columns)
    for role, given in (("source", source), ("target", target)):
        if given is not None and given not in columns:
            raise ValueError(f"{role}={given!r} is not a column; there are {_quoted(columns)}.")
    found = []
    for role, given, words in (("source", source, SOURCES), ("target", target, TARGETS)):
        exact = [c for c in columns if _words(c) in words]
        fitting = (
            [given] if given is not None else exact or [c for c in columns if _is_end(c, words)]
        )
        if len(fitting) > 1:
            raise ValueError(
                f"{_quoted(fitting)} could all be the {role} of an edge. Say which one is: "
                f"{role}={fitting[0]!r}."
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


def choose_length(columns, weight=None, weights: str | None = None, *, lone: bool = True):
    """The column of lengths (or strengths) among those that are not ends; None if there is none.

    Parameters
    ----------
    columns : names
    weight : name, optional
        The column, if the user names it.
    weights : {"cost", "strength", "transitions"}, optional
        What the numbers are. If it is not said, a name such as "count" is refused.
    lone : bool
        Take a single column whatever its name; otherwise only one with a known name.
    """
    columns = [name for name in columns if not _is_nameless(name)]
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
                f"one it is: weight={(known or columns)[0]!r}."
            )
        chosen = known[0]
    if weights is None and _is_strength(chosen):
        raise ValueError(
            f"{chosen!r} looks like a strength (the more, the closer), but lengths are costs (the "
            "more, the further). Say which it is: weights='strength' or weights='cost', in "
            "finsler_ext.read_directed or as --weights of the command."
        )
    return chosen


def _quoted(names) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def read_columns(
    columns: Mapping, *, source=None, target=None, weight=None, weights: str | None = None
):
    """Sparse directed distances and node names of an edge list given by its columns."""
    check_weights(weights)
    ends = find_ends(columns, source, target)
    if ends is None:
        raise ValueError(
            f"Columns {_quoted(columns)}: none is known as the source and none as the target of an "
            "edge. Name them source and target (or from and to, tail and head, ...), or say which "
            "they are: source=..., target=..."
        )
    others = [c for c in columns if c not in ends]
    length = choose_length(others, weight, weights)
    sources, targets = (_node_names(columns[end], end) for end in ends)
    values = np.ones(len(sources)) if length is None else _lengths(columns[length], length)
    return edge_matrix(sources, targets, values, weights=weights)


def _node_names(values, column) -> list:
    """Names as Python objects; whole floats are integers, missing names are an error."""
    names = values.tolist() if hasattr(values, "tolist") else list(values)
    for row, name in enumerate(names):
        if name is None or (isinstance(name, float) and not name.is_integer()):
            raise ValueError(
                f"Edge {row + 1} has {name!r} as {column!r}; every edge needs a source and a "
                "target, and numbers of nodes must be whole."
            )
    return [int(name) if isinstance(name, float) else name for name in names]


def _lengths(values, column) -> np.ndarray:
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
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


def edge_matrix(
    sources: Sequence[Hashable],
    targets: Sequence[Hashable],
    lengths,
    names: Sequence[Hashable] | None = None,
    *,
    weights: str | None = None,
) -> tuple[scipy.sparse.csr_array, list]:
    """Directed distances from edges, absent pairs being unknown, and the names of the rows.

    Of several edges between the same two nodes the cheapest counts, or the sum of their
    strengths. Lengths of nan or inf are no edges; edges from a node to itself are left out.
    """
    names = ordered_names([*sources, *targets]) if names is None else list(names)
    place = {name: row for row, name in enumerate(names)}
    try:
        row = np.fromiter((place[name] for name in sources), dtype=np.int64, count=len(sources))
        column = np.fromiter((place[name] for name in targets), dtype=np.int64, count=len(targets))
    except KeyError as unknown:
        raise ValueError(f"names does not have {unknown.args[0]!r}, which is in edges.") from None
    lengths = np.asarray(lengths, dtype=np.float64)
    negative = np.flatnonzero(lengths < 0)
    if negative.size:
        edge = negative[0]
        raise ValueError(
            f"The length of an edge must be a number ≥ 0, got {float(lengths[edge])!r} on "
            f"{sources[edge]!r} → {targets[edge]!r}."
        )
    known = np.isfinite(lengths)
    row, column, lengths = row[known], column[known], lengths[known]
    shape = (len(names), len(names))
    if weights in ("strength", "transitions"):
        strengths = scipy.sparse.csr_array((lengths, (row, column)), shape=shape)
        return path_lengths(strengths, stochastic=weights == "transitions"), names
    proper = row != column
    row, column, lengths = row[proper], column[proper], lengths[proper]
    order = np.lexsort((lengths, column, row))
    row, column, lengths = row[order], column[order], lengths[order]
    first = np.ones(row.size, dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    kept = lengths[first], (row[first], column[first])
    return scipy.sparse.csr_array(kept, shape=shape), names


def path_lengths(strengths, *, stochastic: bool = False) -> scipy.sparse.csr_array:
    """−log of the share of its source's total that each edge has: likely paths are short.

    The diagonal counts in the total (staying), but is no edge. With ``stochastic``, rows must sum
    to 1 already.
    """
    S = scipy.sparse.csr_array(strengths, dtype=np.float64, copy=True)
    S.sum_duplicates()
    if S.nnz and (np.isnan(S.data).any() or S.data.min() < 0):
        kind = "Transition probabilities" if stochastic else "Strengths"
        raise ValueError(f"{kind} must be numbers ≥ 0.")
    total = np.asarray(S.sum(axis=1)).ravel()
    if stochastic:
        off = np.flatnonzero(np.abs(total - 1.0) > STOCHASTIC_TOLERANCE)
        if off.size:
            raise ValueError(
                f"Rows of a transition matrix must sum to 1; row {off[0]} sums to "
                f"{total[off[0]]:.4g} ({off.size} such rows). Divide each row by its sum, and "
                "check that rows are sources."
            )
        total = np.ones_like(total)
    source = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    edge = (S.data > 0) & (source != S.indices)
    source, target = source[edge], S.indices[edge]
    share = np.minimum(S.data[edge] / total[source], 1.0)
    lengths = -np.log(share) + 0.0  # not −0.0
    return scipy.sparse.csr_array((lengths, (source, target)), shape=S.shape)
