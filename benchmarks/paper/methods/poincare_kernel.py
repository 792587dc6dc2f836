"""The loss of a Poincaré map and its gradient: two passes over all pairs, in float32.

    L(Y) = (1/N) Σ_i [ KL(p_i ‖ q_i) + KL(q_i ‖ p_i) ],
    z_ij = −d_ij/γ,   q_ij = e^{z_ij}/Z_i,   Z_i = Σ_k e^{z_ik},   cosh d_ij = 1 + u_ij,
    u_ij = 2‖y_i − y_j‖²/(a_i a_j),   a_i = 1 − ‖y_i‖².

The first pass gives Z_i and both divergences of every row, the second the forces:

    ∂(N L)/∂z_ij = q_ij (1 + ln q_ij − ln p_ij − KL(q_i ‖ p_i)) − p_ij          (of row i alone)
    ∂d_ij/∂y_i = (4/(a_i a_j sinh d_ij)) (y_i − y_j + y_i ‖y_i − y_j‖²/a_i).

Logarithm and exponential are power series after the powers of two have been split off, so that
they run in vector registers: the library's functions would take most of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool

__all__ = ["symmetric_divergence"]

# Columns per partial sum: buffers stay in the first-level cache, and float32 sums stay short
# (they are added in float64).
BLOCK = 512
# Keeps coincident points from dividing by zero: they have no direction and feel no force.
TINY = np.float32(1e-18)
ONE, TWO, HALF = np.float32(1), np.float32(2), np.float32(0.5)
LN_2, LOG2_E = np.float32(np.log(2)), np.float32(1 / np.log(2))
# Bits of float32: √½, below which a mantissa counts to the power above, and the exponent's offset.
ROOT_HALF_BITS, MANTISSA, EXPONENT_SHIFT, EXPONENT_OFFSET = (
    np.int32(0x3F3504F3),
    np.int32(0x7FFFFF),
    np.int32(23),
    np.int32(127),
)
# Below this e^z is no normal float32. No two points are farther apart than 24.4 (twice the
# largest radius), so only γ < 0.28 gets there.
LOWEST_POWER = np.float32(-87.0)
THIRD, FIFTH, SEVENTH, NINTH = (np.float32(1 / k) for k in (3, 5, 7, 9))
P3, P4, P5, P6 = (np.float32(1 / k) for k in (6, 24, 120, 720))
VECTORISED = {"reassoc", "contract", "nsz", "nnan"}


def symmetric_divergence(
    position: np.ndarray, p: np.ndarray, log_p: np.ndarray, gamma: float, pool: RowPool
) -> tuple[float, np.ndarray]:
    """L and its Euclidean gradient.

    Parameters
    ----------
    position : array of shape (n, m), inside the ball
    p, log_p : float32 arrays of shape (n, n)
        Symmetric, rows summing to 1; and its logarithm.
    gamma : float
    pool : RowPool over the n rows
    """
    n, m = position.shape
    room = 1.0 - np.square(position).sum(axis=1)
    columns = np.ascontiguousarray(position.T, dtype=np.float32)
    inverse_room = (1.0 / room).astype(np.float32)
    cooling = np.float32(-1.0 / gamma)
    sums = np.empty((n, 3))
    pool.run(_row_sums, columns, inverse_room, p, log_p, cooling, sums)
    partition, crossed, forward = sums.T
    log_partition = np.log(partition)
    reverse = crossed / partition - log_partition
    loss = float(np.mean(forward + log_partition + reverse))
    share = (1.0 / partition).astype(np.float32)
    offset = (log_partition + reverse - 1.0).astype(np.float32)
    pull = np.empty((n, m + 1))
    pool.run(_pulls, columns, inverse_room, p, log_p, cooling, share, offset, pull)
    gradient = pull[:, :m] + position * (pull[:, m] / room)[:, None]
    return loss, gradient * (-4.0 / (gamma * n * room))[:, None]


@njit(nogil=True, cache=True, inline="always")
def _cosh_less_one(columns, inverse_room, i, first, size, u):
    """u_ij for a block of j."""
    for b in range(size):
        u[b] = np.float32(0)
    for c in range(columns.shape[0]):
        own, other = columns[c, i], columns[c, first : first + size]
        for b in range(size):
            step = own - other[b]
            u[b] += step * step
    own, other = TWO * inverse_room[i], inverse_room[first : first + size]
    for b in range(size):
        u[b] *= own * other[b]


@njit(nogil=True, cache=True, inline="always")
def _log_and_power(size, value, bits, cooling, z, power, power_bits):
    """z = cooling · ln value and power = e^z, for values ≥ 1; ``bits`` are those of value."""
    for b in range(size):
        shifted = np.int32(bits[b] - ROOT_HALF_BITS)
        z[b] = np.float32(np.int32(shifted >> EXPONENT_SHIFT))
        bits[b] = np.int32(np.int32(shifted & MANTISSA) + ROOT_HALF_BITS)
    for b in range(size):
        t = (value[b] - ONE) / (value[b] + ONE)
        s = t * t
        odd = t + t * s * (THIRD + s * (FIFTH + s * (SEVENTH + s * NINTH)))
        z[b] = cooling * (z[b] * LN_2 + TWO * odd)
    for b in range(size):
        exponent = max(z[b], LOWEST_POWER)
        whole = np.rint(exponent * LOG2_E)
        power_bits[b] = np.int32(np.int32(np.int32(whole) + EXPONENT_OFFSET) << EXPONENT_SHIFT)
        r = exponent - whole * LN_2
        value[b] = ONE + r * (ONE + r * (HALF + r * (P3 + r * (P4 + r * (P5 + r * P6)))))
    for b in range(size):
        power[b] *= value[b]


# Every row is summed the same way whichever thread it falls to.
@njit(nogil=True, cache=True, error_model="numpy", fastmath=VECTORISED)
def _row_sums(start, stop, columns, inverse_room, p, log_p, cooling, sums):
    """Σ_j e^z, Σ_j e^z (z − ln p) and Σ_j p (ln p − z)."""
    n = columns.shape[1]
    u, z, power = np.empty((3, BLOCK), dtype=np.float32)
    bits, power_bits = u.view(np.int32), power.view(np.int32)
    for i in range(start, stop):
        sums[i] = 0.0
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            _cosh_less_one(columns, inverse_room, i, first, size, u)
            for b in range(size):
                u[b] += ONE + np.sqrt(u[b] * (u[b] + TWO))
            _log_and_power(size, u, bits, cooling, z, power, power_bits)
            here, log_here = p[i, first : first + size], log_p[i, first : first + size]
            partition, crossed, forward = np.float32(0), np.float32(0), np.float32(0)
            for b in range(size):
                lead = z[b] - log_here[b]
                partition += power[b]
                crossed += power[b] * lead
                forward -= here[b] * lead
            sums[i, 0] += partition
            sums[i, 1] += crossed
            sums[i, 2] += forward


@njit(nogil=True, cache=True, error_model="numpy", fastmath=VECTORISED)
def _pulls(start, stop, columns, inverse_room, p, log_p, cooling, share, offset, pull):
    """Σ_j r_ij (y_i − y_j)/a_j, and Σ_j r_ij ‖y_i − y_j‖²/a_j in the last column.

    r_ij is ∂(N L)/∂z_ij, of both rows, over sinh d_ij.
    """
    m, n = columns.shape
    u, z, power, sinh, swell = np.empty((5, BLOCK), dtype=np.float32)
    bits, power_bits = u.view(np.int32), power.view(np.int32)
    for i in range(start, stop):
        pull[i] = 0.0
        own_share, own_offset = share[i], offset[i]
        half_room = HALF / inverse_room[i]
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            _cosh_less_one(columns, inverse_room, i, first, size, u)
            for b in range(size):
                sinh[b] = np.sqrt(u[b] * (u[b] + TWO))
                swell[b] = u[b]
                u[b] += ONE + sinh[b]
            _log_and_power(size, u, bits, cooling, z, power, power_bits)
            here, log_here = p[i, first : first + size], log_p[i, first : first + size]
            other_share, other_offset = share[first : first + size], offset[first : first + size]
            other_room = inverse_room[first : first + size]
            part = np.float32(0)
            for b in range(size):
                lead = z[b] - log_here[b]
                slope = own_share * (lead - own_offset) + other_share[b] * (lead - other_offset[b])
                r = (power[b] * slope - TWO * here[b]) / (sinh[b] + TINY)
                part += r * swell[b]
                u[b] = r * other_room[b]
            pull[i, m] += part * half_room
            for c in range(m):
                own, other, part = columns[c, i], columns[c, first : first + size], np.float32(0)
                for b in range(size):
                    part += u[b] * (own - other[b])
                pull[i, c] += part
