"""Stochastic gradient descent of the Finsler UMAP loss.

With memberships p_ij on the directed edges i → j, F the distance of the space and
q = 1/(1 + a F^{2b}), the loss is

    L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij).

Edges are sampled in proportion to p; the second sum is estimated by a few random
partners ("negatives") for every sampled out-edge.

* **Owner computes.** In a step each vertex reads a snapshot of all positions and writes
  only its own new position, looking at its out-edges and its in-edges. Both ends of an
  edge see the same snapshot and take the same sampling decision, so attraction conserves
  momentum, and the result depends neither on the number of threads nor on the order of
  the rows (a sequential sweep over sorted rows invents a height along the sorting).
* **Two-sided negatives.** A random partner k pushes vertex i by the mean of the forces
  of i → k and of k → i. Taking i → k alone leaves out half of the gradient and
  pushes everything along −ω, the more the denser the place.
* **Steps smaller than an epoch.** The edges are dealt into N_STEPS groups, one per step.
  Moving by all forces of an epoch at once overshoots and lets the layout get stuck.
* **No state.** Whether an edge is sampled in an epoch, and which partners are drawn,
  follow from integer arithmetic on (seed, epoch, vertex); nothing is stored per edge.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext.layout.umap.forces import look_up

__all__ = ["N_STEPS", "EdgeSampler", "edge_sampler", "mix", "step_kernel"]

# Steps per epoch. On the digits, k-means AMI of 2-D layouts: 0.88 with one, 0.90 with four,
# 0.91 with sixteen steps, which take 1, 1.4 and 3 times as long.
N_STEPS = 4

_ALWAYS = np.uint64(0xFFFFFFFF)
_HALF = np.float32(0.5)
# 2⁶⁴ divided by the golden ratio, and the second prime of xxHash: multiples of them are spread.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DEAL = np.uint64(0xC2B2AE3D27D4EB4F)


@njit(inline="always", cache=True)
def mix(state):
    """A bijection of 64 bits that leaves no visible pattern (splitmix64's finaliser)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(inline="always", cache=True)
def _is_sampled(source, target, rate, epoch):
    """True in a share rate/2^32 of the epochs, evenly spaced, from an edge's own phase."""
    phase = np.uint64(source) * _GOLDEN
    phase = (phase ^ np.uint64(target)) * np.uint64(0xD6E8FEB86659FD93)
    phase = phase ^ (phase >> np.uint64(32))
    return ((phase + np.uint64(epoch) * np.uint64(rate)) & _ALWAYS) < np.uint64(rate)


@cache
def step_kernel(forward, n_components: int):
    """The kernel of one step for one space and dimension, so that its inner loops unroll.

    ``kernel(start, stop, position, moved, *edge_sampler, table, step, epoch, map_rate,
    height_rate, omega, negatives, both_ways, seed)`` writes ``moved[start:stop]``; ``forward`` is
    that of a `finsler_ext.spaces.Space`. Negatives need not be taken both ways where there is no
    drift: the two are the same then.
    """
    last = n_components - 1

    @njit(nogil=True, cache=True, fastmath=True)
    def take_step(
        start,
        stop,
        position,
        moved,
        out_indptr,
        out_target,
        out_rate,
        in_indptr,
        in_source,
        in_rate,
        table,
        step,
        epoch,
        map_rate,
        height_rate,
        omega,
        negatives,
        both_ways,
        seed,
    ):
        n_vertices = np.uint64(position.shape[0])
        force = np.zeros(n_components, dtype=np.float32)
        offset = np.zeros(n_components, dtype=np.float32)
        longest = 0
        for row in range(start * N_STEPS + step, stop * N_STEPS, N_STEPS):
            longest = max(longest, out_indptr[row + 1] - out_indptr[row])
            longest = max(longest, in_indptr[row + 1] - in_indptr[row])
        sampled = np.empty(longest + 1, dtype=np.int32)
        stream = mix(seed + np.uint64(epoch * N_STEPS + step) * _GOLDEN)

        for i in range(start, stop):
            row = i * N_STEPS + step
            for c in range(n_components):
                force[c] = 0.0

            n_out = 0
            for e in range(out_indptr[row], out_indptr[row + 1]):
                sampled[n_out] = out_target[e]
                n_out += _is_sampled(i, out_target[e], out_rate[e], epoch)
            for s in range(n_out):
                j = sampled[s]
                square = np.float32(0.0)
                for c in range(n_components):
                    offset[c] = position[i, c] - position[j, c]
                    square += offset[c] * offset[c]
                if square > 0.0:
                    length = np.sqrt(square)
                    distance, by_length, by_rise = forward(length, -offset[last], omega)
                    pull = look_up(table, 0, distance)
                    along = pull * by_length / length
                    for c in range(n_components):
                        force[c] -= along * offset[c]
                    force[last] += pull * by_rise * omega

            n_in = 0
            for e in range(in_indptr[row], in_indptr[row + 1]):
                sampled[n_in] = in_source[e]
                n_in += _is_sampled(in_source[e], i, in_rate[e], epoch)
            for s in range(n_in):
                j = sampled[s]
                square = np.float32(0.0)
                for c in range(n_components):
                    offset[c] = position[i, c] - position[j, c]
                    square += offset[c] * offset[c]
                if square > 0.0:
                    length = np.sqrt(square)
                    distance, by_length, by_rise = forward(length, offset[last], omega)
                    pull = look_up(table, 0, distance)
                    along = pull * by_length / length
                    for c in range(n_components):
                        force[c] -= along * offset[c]
                    force[last] -= pull * by_rise * omega

            if n_out > 0:
                state = mix(stream ^ np.uint64(i))
                chance = np.float64(state >> np.uint64(40)) / 16777216.0
                for _ in range(int(n_out * negatives + chance)):
                    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                    k = np.int64(((state >> np.uint64(32)) * n_vertices) >> np.uint64(32))
                    square = np.float32(0.0)
                    for c in range(n_components):
                        offset[c] = position[i, c] - position[k, c]
                        square += offset[c] * offset[c]
                    if square > 0.0:
                        length = np.sqrt(square)
                        distance, along_out, up_out = forward(length, -offset[last], omega)
                        push_out = look_up(table, 2, distance)
                        push_in, along_in = push_out, along_out
                        lift = -push_out * up_out
                        if both_ways:
                            distance, along_in, up_in = forward(length, offset[last], omega)
                            push_in = look_up(table, 2, distance)
                            lift = (push_in * up_in - push_out * up_out) * _HALF
                        along = (push_out * along_out + push_in * along_in) * _HALF / length
                        for c in range(n_components):
                            force[c] += along * offset[c]
                        force[last] += lift * omega

            for c in range(last):
                moved[i, c] = position[i, c] + map_rate * force[c]
            moved[i, last] = position[i, last] + height_rate * force[last]

    return take_step


class EdgeSampler(NamedTuple):
    """Out- and in-edges by (owner, step), with sampling rates in units of 2^-32 per epoch.

    Row ``i * N_STEPS + step`` of each CSR structure holds the edges that vertex i looks at
    in that step; an edge is in the same step for both of its ends.
    """

    out_indptr: np.ndarray
    out_target: np.ndarray
    out_rate: np.ndarray
    in_indptr: np.ndarray
    in_source: np.ndarray
    in_rate: np.ndarray


def edge_sampler(graph, n_epochs: int) -> EdgeSampler:
    """Deal the edges of a membership graph into steps; those due less than once are left out."""
    edges = scipy.sparse.coo_array(graph)
    weight = edges.data
    strongest = weight.max(initial=0.0)
    due = weight > strongest / max(n_epochs, 1) if n_epochs > 1 else weight > 0
    source, target = (c[due].astype(np.int64) for c in edges.coords)
    share = weight[due].astype(np.float64) / (strongest or 1.0)
    rate = (share * float(_ALWAYS)).astype(np.uint32)
    mixed = (source.astype(np.uint64) * _GOLDEN ^ target.astype(np.uint64)) * _DEAL
    step = (mixed >> np.uint64(40)).astype(np.int64) % N_STEPS
    n = graph.shape[0]
    return EdgeSampler(
        *_by_owner(source, target, step, rate, n), *_by_owner(target, source, step, rate, n)
    )


def _by_owner(owner, other, step, rate, n):
    by_step = scipy.sparse.coo_array(
        (rate, (owner * N_STEPS + step, other)), shape=(n * N_STEPS, n)
    ).tocsr()
    return by_step.indptr.astype(np.int64), by_step.indices.astype(np.int32), by_step.data
