"""What a layout asks of the space it embeds into.

Points y live in R^m. The first m − 1 columns of an embedding are its *map*, the last is its
*height*. The length F of a step u from a source to a target depends on two numbers only,

    d = ‖u‖,    z = the last coordinate of u: the target's height less the source's,

and on the strength ω ≥ 0 of the drift: F = F(d, z, ω), with F(d, z, 0) = d. Every layout reads F
and its derivatives from `Space.forward`, so a new space is one function and an entry in
`finsler_ext.geometry.SPACES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from finsler_ext.schema import TEXT, saved

# float32, which any other precision takes over; TINY is far below any distance, and not 0.
ONE, TINY = np.float32(1.0), np.float32(1e-30)


class Majoriser(NamedTuple):
    """What majorisation of the stress (SMACOF) needs; only for spaces with F = d + ω z.

    height : ω → curvature of Σ w F² along the height, in units of that of Σ w d²; symmetric
        weights
    bound : ω → upper bound of the Hessian of F²/2; for any weights
    """

    height: Callable[[float], float]
    bound: Callable[[float], float]


@dataclass(frozen=True)
@saved({"name": TEXT})
class Space:
    """A space with a drift along the last axis.

    Parameters
    ----------
    name : str
    forward : callable
        ``forward(length, rise, omega)`` returns F, ∂F/∂d, and ∂F/∂z divided by ω; ``rise`` is z.
        A function of a module, registered by
        ``numba.extending.register_jitable(inline="always")``: kernels compile it, arrays go
        through it as they are. Constants in it are float32, which any other precision takes over.
        It must be finite at d = 0.
    skew : callable
        ``skew(length, rise, omega)`` is (F_ij − F_ji)/2ω, of arrays; finite at ω = 0.
    limit : float
        Drifts are smaller than this.
    even_kernel : callable, optional
        W(u) = w(F(u)) + w(F(−u)) of the t-SNE kernel w, where it is smooth at 0; see
        `finsler_ext.geometry.randers.even_kernel`. Without it the repulsion is summed over all
        pairs.
    majoriser : Majoriser, optional
        Without it MDS descends by gradients.
    """

    name: str
    forward: Callable
    skew: Callable
    limit: float
    even_kernel: Callable | None = None
    majoriser: Majoriser | None = None

    def check_drift(self, omega_norm) -> float:
        """Return ``omega_norm`` as a float in [0, limit), or raise a ValueError."""
        limit = f"{self.limit:g}"
        if isinstance(omega_norm, bool) or not isinstance(omega_norm, Real):
            raise ValueError(f"omega_norm must be a number in [0, {limit}), got {omega_norm!r}.")
        if not 0.0 <= float(omega_norm) < self.limit:
            raise ValueError(
                f"omega_norm must lie in [0, {limit}) in a {self.name.capitalize()} space, got "
                f"{omega_norm!r}: at {limit} and beyond, distances along the drift stop being "
                f"positive or convex. Try {0.5 * self.limit:g}."
            )
        return float(omega_norm)

    def distance(self, source, target, omega_norm: float) -> np.ndarray:
        """F from ``source`` to ``target`` along the last array axis."""
        step = np.asarray(target, dtype=float) - np.asarray(source, dtype=float)
        length = np.linalg.norm(step, axis=-1)
        return self.forward(length, step[..., -1], self.check_drift(omega_norm))[0]

    def distances(self, embedding, omega_norm: float) -> np.ndarray:
        """The directed N × N matrix of F, rows being sources."""
        embedding = np.asarray(embedding, dtype=float)
        return self.distance(embedding[:, None, :], embedding[None, :, :], omega_norm)

    def gradient(self, source, target, omega_norm: float) -> np.ndarray:
        """∂F(source, target)/∂source; the target's is its negative.

        Where the two points coincide the direction is undefined and 0 is returned.
        """
        back = np.asarray(source, dtype=float) - np.asarray(target, dtype=float)
        omega = np.float64(self.check_drift(omega_norm))  # float32 factors must not round it
        length = np.linalg.norm(back, axis=-1, keepdims=True)
        apart = length > 0
        unit = np.divide(back, length, out=np.zeros_like(back), where=apart)
        _, along, up = self.forward(length, -back[..., -1:], omega)
        unit = along * unit
        unit[..., -1:] -= omega * up
        return np.where(apart, unit, 0.0)

    def shown_skew(self, embedding, source, target, omega_norm: float) -> np.ndarray:
        """(F_ij − F_ji)/2ω from rows ``source`` to rows ``target``: what the embedding shows."""
        level = np.asarray(embedding[:, -1], dtype=np.float64)
        rise = level[target] - level[source]
        if self.skew is height_difference:  # lengths are not needed
            return rise
        square = np.zeros(len(rise))
        for column in np.asarray(embedding, dtype=np.float64).T:
            square += (column[target] - column[source]) ** 2
        return self.skew(np.sqrt(square), rise, omega_norm)


def height_difference(length, rise, omega):
    """(F_ij − F_ji)/2ω where F = d + ω z."""
    return rise


def map_columns(embedding) -> np.ndarray:
    """All columns but the last: the usual map."""
    return np.asarray(embedding)[:, :-1]


def height(embedding) -> np.ndarray:
    """The last column: the axis of the drift."""
    return np.asarray(embedding)[:, -1]
