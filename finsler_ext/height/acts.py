"""What the last column of a layout is: the modes of ``height``, on one engine of two acts.

In the first act the map settles by itself, without a drift. Then the height rises from the
potential φ of the data (`Asymmetry.potential`: the log local scale, or the potential of directed
data), at the factor β > 0 that gives the lowest loss, and the second act descends with the drift.
The modes differ in how far the height may move in it:

potential  not at all: it stays β φ, and the map settles around it
held       the less, the larger the drift (`height_share`)
nested     freely, whatever the drift: one more map column
free       has one act: all columns descend together, the drift acts from the first step, and at
           the end its best axis (`best_axis`) becomes the last one
euclidean  free, and nothing to show: no drift, or affinities that are symmetric

The steps that a map needs to untangle would move the height at random long before the asymmetry
has an effect, and the long-range part of a height builds up only at the pace of diffusion along
the graph; hence two acts. The first does not depend on the drift, so layouts at several drifts
share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from scipy.optimize import minimize, minimize_scalar

from finsler_ext.height.islands import (
    LOSS_RISE,
    NO_DRIFT,
    Islands,
    edge_lengths,
    settle_islands,
    springs_between,
)
from finsler_ext.height.start import follow_pins
from finsler_ext.validation import refuse_diverged

POTENTIAL, HELD, NESTED, FREE, EUCLIDEAN = "potential", "held", "nested", "free", "euclidean"
HEIGHTS = ("auto", POTENTIAL, HELD, NESTED, FREE)
# "auto" leaves features free unless a map of this many columns remains. A map of one column is a
# comb (digits in two columns: k-means AMI 0.86 held, 0.92 free).
MAP_COLUMNS = 2
# Of the share s(ω) = 1/(1 + (ω/0.1)³) of a held height: at ω = 0.1 all columns keep as many
# neighbours as UMAP's three, at ω = 0.5 the ranks of heights on two halves of the data agree.
HALF_DRIFT, STEEPNESS = 0.1, 3.0
# Of a noisy potential this share is the neighbours' mean where a height starts from it; 0.5 costs
# three times as much of the rank of heights on the other half.
SMOOTHED = 0.25
# β lies between these multiples of the map's median edge over the potential's standard deviation.
SMALLEST_RISE, LARGEST_RISE = 0.01, 10.0
# Evaluations of the loss in the search for β, and its tolerance in log β.
MOST_EVALUATIONS, RISE_TOLERANCE = 12, 0.1
# Evaluations of a quasi-Newton search for the axis: to first order in ω its start is the answer.
AXIS_EVALUATIONS = 6
# That search ends where the slope has fallen to this share of what it was.
SLOPE_SHARE = 1e-2
# A loss that falls by less than this share has not fallen.
LOSS_ROUNDING = 1e-9

# The loss and its derivative, by the direction of the drift.
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def check_height(height, n_components: int, start_columns: int | None, start_name: str) -> None:
    """Refuse a ``height`` that does not fit the number of columns, or those of a given start."""
    if height not in HEIGHTS:
        raise ValueError(f"height must be one of {HEIGHTS}, got {height!r}.")
    if height in (POTENTIAL, HELD, NESTED) and n_components < 2:
        raise ValueError(
            f"height={height!r} needs a map beside the height, got n_components={n_components}. "
            "Use height='auto', or more columns."
        )
    if start_columns is None or height == "auto":
        return
    if (height == FREE) != (start_columns == n_components):
        raise ValueError(
            f"height={height!r} cannot start from {start_name} with {start_columns} columns: a "
            f"free height needs all {n_components} columns, any other the {n_components - 1} of "
            "the map. Use height='auto'."
        )


def check_law(state: dict) -> None:
    """Refuse fitted attributes without the slope β > 0 that new heights follow.

    A flat potential has none. Heights that are not settled may fall with the scale.
    """
    islands, mode = state.get("islands_"), state.get("height_")
    if islands is None or not (islands.settled or mode == POTENTIAL):
        return
    potential, slope = state.get("potential_"), islands.slope
    potential = np.empty(0) if potential is None else potential[np.isfinite(potential)]
    flat = not potential.size or _is_flat(potential - potential.mean())
    if not (0 < slope < np.inf or (flat and np.isnan(slope))):
        raise ValueError(f"islands_ has the slope {slope}, which no height follows")


def height_mode(
    height: str,
    n_components: int,
    omega_norm: float,
    symmetric: bool,
    start_columns: int | None,
    directed: bool = False,
) -> str:
    """The mode of one drift and one graph; ``directed`` is data that is itself directed."""
    if symmetric and height not in (POTENTIAL, NESTED):
        return EUCLIDEAN
    if height == "auto":
        columns = n_components if start_columns is None else start_columns + 1
        few = columns <= MAP_COLUMNS and not (directed and omega_norm > 0)
        alone = n_components == 1 or start_columns == n_components
        wide = start_columns is not None and start_columns < n_components
        height = FREE if alone or (few and not wide) else POTENTIAL if directed else HELD
    if omega_norm > 0:
        return height
    return EUCLIDEAN if height == FREE else NESTED  # without a drift a height has no direction


def height_share(mode: str, omega_norm: float) -> float:
    """How far the height may move in the second act: 0 not at all, 1 as one more map column."""
    if mode == HELD:
        return 1.0 / (1.0 + (omega_norm / HALF_DRIFT) ** STEEPNESS)
    return 0.0 if mode == POTENTIAL else 1.0


class FirstAct(NamedTuple):
    """A layout at the end of its first act, at no drift.

    position : array of shape (n, m)
    kept : whatever the descent wants to find again when another drift continues from here
    stopped : whether a callback has seen enough, so that there is no second act
    """

    position: np.ndarray
    kept: Any = None
    stopped: bool = False


class Descent(Protocol):
    """What a method tells the engine: its affinities, its loss and how to descend it.

    graph : sparse array of directed affinities p_ij
    pins : array of shape (n, m), nan where free, or None: what does not move
    start : array of shape (n, m), the height in the last column
    moves : whether there is any step to take
    n_threads : they change no bit
    """

    graph: Any
    start: np.ndarray
    moves: bool
    n_threads: int
    pins: np.ndarray | None

    def pull(self, length: np.ndarray) -> np.ndarray:
        """A(d), the derivative of the loss of an edge by its length."""

    def settle(self) -> FirstAct:
        """The first act: the map columns, at no drift."""

    def release(self, position: np.ndarray, omega_norm: float, *, share: float) -> np.ndarray:
        """The second act of a settled map, whose height moves at this share of its full rate."""

    def descend(self, omega_norm: float) -> np.ndarray:
        """The whole descent from the start, all columns alike."""

    def loss(self, position: np.ndarray, omega_norm: float) -> Any:
        """The loss, as something that has a float."""

    def rise_loss(self, position: np.ndarray, omega_norm: float) -> float:
        """The loss but for a constant, in large data of a sample of the pairs."""

    def axis_loss(self, position: np.ndarray, omega_norm: float) -> Objective:
        """The loss as a function of the direction of the drift."""


class Layout(NamedTuple):
    """Where a descent ended.

    position : array of shape (n, m)
    height : "potential", "held", "nested" or "free"
    loss : what the descent's ``loss`` returns
    islands : Islands
    first_act : FirstAct, to continue from at another drift; None if there was none
    frame : the rotation from the frame of the descent to that of ``position``
    """

    position: np.ndarray
    height: str
    loss: Any
    islands: Islands
    first_act: FirstAct | None
    frame: np.ndarray


def lay_out(
    descent: Descent,
    omega_norm: float,
    *,
    mode: str,
    potential=None,
    noisy: bool = False,
    find_axis: bool = True,
    first_act: FirstAct | None = None,
) -> Layout:
    """The layout at one drift.

    Parameters
    ----------
    mode : str
        What `height_mode` returns.
    potential : array of shape (n,), optional
        What the height rises from, and follows within the connected parts; nan where unknown.
    noisy : bool
        Whether the potential was estimated point by point, as density is: a height that moves
        starts from its mean with the neighbours' then.
    find_axis : bool
        Whether a free layout may be rotated; False keeps the frame of the start.
    first_act : FirstAct, optional
        That of an earlier layout in the same mode, not to be repeated.
    """
    frame = np.eye(descent.start.shape[1])
    name = FREE if mode == EUCLIDEAN else mode
    if not descent.moves:
        position = descent.descend(omega_norm)
        loss = descent.loss(position, omega_norm)
        return Layout(position, name, loss, NO_DRIFT, None, frame)
    if name == FREE:
        position = descent.descend(omega_norm)
        if mode == FREE and find_axis:
            frame = _axis(descent, position, omega_norm)
            frame = canonical_map(turned(position, frame)) @ frame
        position, loss, islands = _free_apart(
            descent, turned(position, frame), omega_norm, potential
        )
        return Layout(position, name, loss, islands, None, frame)
    first_act = descent.settle() if first_act is None else first_act
    rough = noisy and mode != POTENTIAL
    position, slope = _raised(descent, first_act.position, omega_norm, potential, rough)
    position = _pinned(descent, position)
    if not first_act.stopped:
        share = height_share(mode, omega_norm)
        position = descent.release(position, omega_norm, share=share)
    if mode == POTENTIAL:
        islands = _of_potential(descent.graph, slope, noisy)
    else:
        position, islands = _held_apart(descent, position, omega_norm, potential)
        position = _pinned(descent, position)
    return Layout(position, name, descent.loss(position, omega_norm), islands, first_act, frame)


def _raised(descent, position, omega_norm, potential, rough: bool) -> tuple[np.ndarray, float]:
    """The map with the height β φ at the lowest loss, and β."""
    unit, scale = _standardised(potential, descent.graph, rough)
    flat = position[:, :-1]
    refuse_diverged(flat)
    length = edge_lengths(flat, scipy.sparse.csr_array(descent.graph))
    middle = float(np.median(length, overwrite_input=True)) if length.size else 1.0
    bounds = np.log(np.multiply((SMALLEST_RISE, LARGEST_RISE), max(middle, 1e-6)))

    def loss(log_rise):
        return descent.rise_loss(_with_height(position, np.exp(log_rise) * unit), omega_norm)

    options = {"maxiter": MOST_EVALUATIONS, "xatol": RISE_TOLERANCE}
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
    rise = float(np.exp(found.x))
    return _with_height(position, rise * unit), rise / scale


def _standardised(potential, graph, rough: bool) -> tuple[np.ndarray, float]:
    """The potential with mean 0 and standard deviation 1, and what it was.

    A share of a rough one is its mean over the neighbours. Noise stands for one that is flat: a
    height without differences would never move.
    """
    n = graph.shape[0]
    values = np.full(n, np.nan) if potential is None else np.asarray(potential, dtype=np.float64)
    known = np.isfinite(values)
    values = np.where(known, values, values[known].mean() if known.any() else 0.0)
    if rough:
        there = scipy.sparse.csr_array(graph)
        back = there.T  # shares its memory
        ones = np.ones(n)
        degree = there @ ones + back @ ones
        mean = (there @ values + back @ values) / np.where(degree > 0, degree, 1.0)
        values = (1.0 - SMOOTHED) * values + SMOOTHED * mean
    values = values - values.mean()
    if _is_flat(values):
        return np.random.default_rng(0).normal(size=n), float("nan")
    spread = float(values.std())
    return values / spread, spread


def _is_flat(centred: np.ndarray) -> bool:
    return float(centred.std()) <= 1e-9 * max(float(np.abs(centred).max(initial=0.0)), 1.0)


def _pinned(descent, position):
    """Heights that are given are taken, and the others follow."""
    pins = descent.pins
    if pins is None or np.isnan(pins[:, -1]).all():
        return position
    return _with_height(position, follow_pins(position[:, -1], pins[:, -1], descent.graph))


def _with_height(position, height):
    return np.column_stack([position[:, :-1], height.astype(position.dtype)])


def _of_potential(graph, slope: float, scale: bool) -> Islands:
    """Heights that are the potential compare where it does: a ``scale`` everywhere."""
    n_parts = scipy.sparse.csgraph.connected_components(graph, directed=False)[0]
    apart = n_parts > 1 and not scale
    return Islands(n_parts, slope, "nothing relates the parts to each other" if apart else "")


def _held_apart(descent, position, omega_norm, potential):
    """Heights that compare across islands, where the loss leaves that open."""
    if omega_norm == 0:
        return position, NO_DRIFT
    height, islands = settle_islands(
        position[:, :-1],
        position[:, -1],
        descent.graph,
        descent.pull,
        potential,
        n_threads=descent.n_threads,
    )
    return _with_height(position, height), islands


def _free_apart(descent, position, omega_norm, potential):
    """As above for a free layout, whose connected parts move as a whole; and the loss."""
    loss = descent.loss(position, omega_norm)
    if omega_norm == 0:
        return position, loss, NO_DRIFT
    height, islands = settle_islands(
        position, position[:, -1], descent.graph, descent.pull, potential, whole=True
    )
    given = descent.pins is not None and np.isfinite(descent.pins[:, -1]).any()
    if given or not islands.settled or islands.n_parts == 1:
        return position, loss, islands
    apart = _with_height(position, height)
    after = descent.loss(apart, omega_norm)
    if float(after) > float(loss) + LOSS_RISE * abs(float(loss)):
        return position, loss, islands._replace(reason="the parts would collide")
    return apart, after, islands


# Where the drift points: the direction u in a finished layout at which its loss is lowest.
#
# Only F_ij = d_ij + ω u·(y_j − y_i) depends on u. To first order in ω the loss is L + ω g·u with
# g = Σ p_ij A(d_ij) (y_j − y_i): moving single points never gets there, because this force is
# spread over all of them. So u is sought by itself, from −g/‖g‖ and from the last axis.


def _axis(descent, position, omega_norm) -> np.ndarray:
    """The rotation that makes the best direction of the drift the last axis."""
    flow = springs_between(position, descent.graph, descent.pull).flow
    # Sums of einsum do not depend on the number of threads, as those of BLAS do.
    start = np.einsum("n,nc->c", flow, position - position.mean(axis=0, dtype=np.float64))
    objective = descent.axis_loss(position, omega_norm)
    return rotation_onto_last(best_axis(objective, position.shape[1], start))


def best_axis(objective: Objective, n_components: int, start=None) -> np.ndarray:
    """The unit vector with the lowest loss found; the last axis if nothing lies below it.

    Only the part of the objective's derivative that is orthogonal to the vector is used.
    ``start`` is where to start from, beside the last axis; it need not have length 1.
    """
    last = np.eye(n_components)[-1]
    at_last = objective(last)
    lowest, best = at_last[0], last
    starts = [(last, at_last)]
    if start is not None and np.linalg.norm(start) > 0:
        first = start / np.linalg.norm(start)
        starts.insert(0, (first, objective(first)))
    for first, at_first in starts:
        found, value = _descend(objective, first, at_first)
        if value < lowest - LOSS_ROUNDING * abs(lowest):
            lowest, best = value, found
    return best


def _descend(objective: Objective, first: np.ndarray, at_first) -> tuple[np.ndarray, float]:
    """Quasi-Newton steps on the sphere, in coordinates of the plane that touches it."""
    value, slope = at_first
    plane = np.linalg.svd(first[None, :])[2][1:]
    steepness = float(np.linalg.norm(plane @ slope))
    if steepness == 0:  # in one dimension, always
        return first, value

    def local(x):
        long = first + x @ plane
        length = np.linalg.norm(long)
        unit = long / length
        value, slope = objective(unit)
        return value / steepness, plane @ (slope - (slope @ unit) * unit) / (length * steepness)

    result = minimize(
        local,
        np.zeros(len(plane)),
        jac=True,
        method="L-BFGS-B",
        options={"maxfun": AXIS_EVALUATIONS, "gtol": SLOPE_SHARE, "ftol": 0.0},
    )
    found = first + result.x @ plane
    return found / np.linalg.norm(found), float(result.fun) * steepness


def rotation_onto_last(axis: np.ndarray) -> np.ndarray:
    """Orthogonal matrix R with R @ axis = the last axis; a rotation in two or more dimensions.

    It turns in the plane of the two, and leaves what is orthogonal to both where it is.
    """
    m = len(axis)
    last = np.eye(m)[-1]
    if m == 1:
        return np.sign(axis)[:, None]
    cosine = float(axis @ last)
    side = axis - cosine * last
    sine = float(np.linalg.norm(side))
    if sine == 0 and cosine > 0:
        return np.eye(m)
    side = side / sine if sine > 0 else np.eye(m)[0]
    turned = np.outer(side, side) + np.outer(last, last)
    quarter = np.outer(last, side) - np.outer(side, last)
    return np.eye(m) + (cosine - 1.0) * turned + sine * quarter


def turned(position: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Every row multiplied by an orthogonal matrix, in the dtype of the rows."""
    if np.array_equal(matrix, np.eye(len(matrix))):
        return position
    return np.einsum("nc,dc->nd", position.astype(np.float64), matrix).astype(position.dtype)


def canonical_map(position: np.ndarray) -> np.ndarray:
    """Orthogonal matrix that puts the map on its principal axes and keeps the height.

    Map columns are in the order of their spread, each with its largest entry positive.
    """
    m = position.shape[1]
    frame = np.eye(m)
    if m == 1 or len(position) < 2:
        return frame
    flat = position[:, :-1].astype(np.float64)
    flat = flat - flat.mean(axis=0)
    axes = np.linalg.eigh(np.einsum("ni,nj->ij", flat, flat))[1][:, ::-1].T
    shown = turned(flat, axes)
    farthest = shown[np.abs(shown).argmax(axis=0), np.arange(m - 1)]
    frame[:-1, :-1] = axes * np.where(farthest < 0, -1.0, 1.0)[:, None]
    return frame
