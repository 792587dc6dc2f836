"""Repulsion by a linear octree: Barnes–Hut on groups of points, in one to three dimensions.

Points are sorted along the Morton curve; a node of the tree is a range of the sorted points, and
nodes are stored in the order of a depth-first walk, each with the place to go on from when its
subtree is skipped. Fewer than three dimensions are padded with zeros, which leaves a quadtree or a
binary tree. Neighbouring points share one walk: it collects what the whole group sees, far cells
and near points, into one list, and every point of the group sums the list with the same vectorised
loop.

A far cell is stood for by four points of a quarter of its mass each, at the corners of a
tetrahedron that has the centre and the covariance of the cell's points. The error is then of third
order in the size of the cell over the distance to the kernel's nearest singularity, for any kernel
and without its derivatives; with the centre of mass alone it is of second order. W is smooth at 0,
so that distance is never below √ν/(1 + ω): a cell is accepted when

    s² ≤ θ² (1 − ω⁴) (R² + ν/(1 + ω)²/4),   R = distance from its centre to the box of the group,

with s² twelve times the largest variance of a coordinate: the side of a cube filled evenly.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.tsne.exact import kernel_constants, kernel_kind

# Bits of a Morton key per axis; three axes fill 63 bits.
MORTON_BITS = 21
# Points of a leaf, and of a group that shares one walk: up to here the walk takes no longer the
# larger the group, and the error falls.
LEAF_SIZE = 8
GROUP_SIZE = 128
# A far cell is stood for by this many points; smaller cells are listed point by point.
CORNERS = 4
# Share of the square of the kernel's own length that counts as distance. Forces in layouts smaller
# than that length nearly cancel: with all of it they erred by 1.1 %, with a quarter by 0.12 %.
SOFTENING = 0.25


class Octree(NamedTuple):
    """Sorted points and the nodes over them, in depth-first order."""

    order: np.ndarray  # row of each sorted point
    point: np.ndarray  # (3, n) sorted positions
    start: np.ndarray  # range of each node
    stop: np.ndarray
    skip: np.ndarray  # next node outside the subtree
    centre: np.ndarray  # (n_nodes, 3)
    side2: np.ndarray  # square of the side, were the cell filled evenly
    reach: np.ndarray  # bound on the distance of any point to the centre
    root: np.ndarray  # Cholesky factor of the covariance, row by row
    group: np.ndarray  # nodes whose points share a walk


def build_octree(point: np.ndarray) -> Octree:
    """The tree over padded positions of shape (3, n)."""
    n = point.shape[1]
    low = point.min(axis=1).astype(np.float64)
    side = float((point.max(axis=1).astype(np.float64) - low).max())
    key = np.empty(n, dtype=np.uint64)
    _morton_keys(point, low, side, key)
    order = np.argsort(key, kind="stable")
    point = np.ascontiguousarray(point[:, order])
    return Octree(order, point, *_build(key[order], point, GROUP_SIZE))


@njit(inline="always", cache=True)
def _spread(x):
    """Bits of a 21-bit integer, three apart."""
    x = (x | (x << np.uint64(32))) & np.uint64(0x1F00000000FFFF)
    x = (x | (x << np.uint64(16))) & np.uint64(0x1F0000FF0000FF)
    x = (x | (x << np.uint64(8))) & np.uint64(0x100F00F00F00F00F)
    x = (x | (x << np.uint64(4))) & np.uint64(0x10C30C30C30C30C3)
    return (x | (x << np.uint64(2))) & np.uint64(0x1249249249249249)


@njit(nogil=True, cache=True)
def _morton_keys(point, low, side, key):
    cells = float(1 << MORTON_BITS)
    scale = cells / side if side > 0.0 else 0.0
    top = np.uint64((1 << MORTON_BITS) - 1)
    for i in range(point.shape[1]):
        x = min(np.uint64((point[0, i] - low[0]) * scale), top)
        y = min(np.uint64((point[1, i] - low[1]) * scale), top)
        z = min(np.uint64((point[2, i] - low[2]) * scale), top)
        key[i] = _spread(x) | (_spread(y) << np.uint64(1)) | (_spread(z) << np.uint64(2))


@njit(nogil=True, cache=True)
def _build(key, point, group_size):
    n = key.shape[0]
    capacity = 2 * n + 1
    start = np.empty(capacity, dtype=np.int32)
    stop = np.empty(capacity, dtype=np.int32)
    level = np.empty(capacity, dtype=np.int32)
    parent = np.empty(capacity, dtype=np.int32)
    skip = np.empty(capacity, dtype=np.int32)
    group = np.empty(n, dtype=np.int32)
    todo = np.empty((8 * (MORTON_BITS + 2), 4), dtype=np.int64)
    todo[0] = 0, n, 0, -1
    n_todo, n_nodes, n_groups = 1, 0, 0
    while n_todo > 0:
        n_todo -= 1
        lo, hi, depth, above = todo[n_todo]
        node = n_nodes
        n_nodes += 1
        start[node], stop[node], level[node], parent[node] = lo, hi, depth, above
        grouped = above >= 0 and (stop[above] - start[above]) <= group_size
        if not grouped and (hi - lo <= group_size or depth == MORTON_BITS):
            group[n_groups] = node
            n_groups += 1
        if hi - lo <= LEAF_SIZE or depth == MORTON_BITS:
            continue
        # chains of cells with a single child are passed over in one go
        while True:
            shift = np.uint64(3 * (MORTON_BITS - 1 - depth))
            if depth == MORTON_BITS - 1 or (key[lo] >> shift) != (key[hi - 1] >> shift):
                break
            depth += 1
        end = hi
        while end > lo:
            digit = key[end - 1] >> shift
            begin = lo + np.searchsorted(key[lo:end], digit << shift)
            todo[n_todo] = begin, end, depth + 1, node
            n_todo += 1
            end = begin
    for k in range(n_nodes):
        skip[k] = k + 1
    for k in range(n_nodes - 1, 0, -1):  # children come after their parent
        skip[parent[k]] = max(skip[parent[k]], skip[k])
    centre, side2, reach, root = _moments(point, start[:n_nodes], stop, skip)
    return (
        start[:n_nodes].copy(), stop[:n_nodes].copy(), skip[:n_nodes].copy(), centre, side2,
        reach, root, group[:n_groups].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _moments(point, start, stop, skip):
    n_nodes = start.shape[0]
    centre = np.zeros((n_nodes, 3), dtype=np.float64)
    side2 = np.zeros(n_nodes, dtype=np.float64)
    reach = np.zeros(n_nodes, dtype=np.float64)
    root = np.zeros((n_nodes, 6), dtype=np.float64)  # first the covariance, then its factor
    step = np.zeros(3, dtype=np.float64)
    for k in range(n_nodes - 1, -1, -1):
        count = stop[k] - start[k]
        if skip[k] == k + 1:  # a leaf
            for j in range(start[k], stop[k]):
                for c in range(3):
                    centre[k, c] += point[c, j]
            for c in range(3):
                centre[k, c] /= count
            for j in range(start[k], stop[k]):
                for c in range(3):
                    step[c] = point[c, j] - centre[k, c]
                _add_square(root, k, step, 1.0)
                reach[k] = max(reach[k], np.sqrt(step[0] ** 2 + step[1] ** 2 + step[2] ** 2))
        else:
            child = k + 1
            while child < skip[k]:
                for c in range(3):
                    centre[k, c] += centre[child, c] * (stop[child] - start[child])
                child = skip[child]
            for c in range(3):
                centre[k, c] /= count
            child = k + 1
            while child < skip[k]:
                share = float(stop[child] - start[child])
                for c in range(3):
                    step[c] = centre[child, c] - centre[k, c]
                for c in range(6):
                    root[k, c] += share * root[child, c]
                _add_square(root, k, step, share)
                length = np.sqrt(step[0] ** 2 + step[1] ** 2 + step[2] ** 2)
                reach[k] = max(reach[k], length + reach[child])
                child = skip[child]
        for c in range(6):
            root[k, c] /= count
        side2[k] = 12.0 * max(root[k, 0], root[k, 2], root[k, 5])
    for k in range(n_nodes):
        xx, yx, yy, zx, zy, zz = root[k]
        a = np.sqrt(xx)
        b, d = (yx / a, zx / a) if a > 0.0 else (0.0, 0.0)
        c = np.sqrt(max(yy - b * b, 0.0))
        e = (zy - d * b) / c if c > 0.0 else 0.0
        root[k] = a, b, c, d, e, np.sqrt(max(zz - d * d - e * e, 0.0))
    return centre, side2, reach, root


@njit(inline="always", cache=True)
def _add_square(covariance, k, step, weight):
    covariance[k, 0] += weight * step[0] * step[0]
    covariance[k, 1] += weight * step[1] * step[0]
    covariance[k, 2] += weight * step[1] * step[1]
    covariance[k, 3] += weight * step[2] * step[0]
    covariance[k, 4] += weight * step[2] * step[1]
    covariance[k, 5] += weight * step[2] * step[2]


def tree_repulsion(
    tree: Octree,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    theta: float,
    targets: np.ndarray | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of `exact_repulsion`, in a space with an even kernel; ``theta`` = 0 is exact.

    ``targets`` are of shape (3, n_targets). Each of them walks on its own, so that its sums do not
    depend on the others.
    """
    dtype = tree.point.dtype
    kernel = walk_kernel(space.even_kernel, kernel_kind(dof))
    constants = kernel_constants(dof, omega_norm, dtype)
    alone = targets is not None
    at = tree.point if targets is None else np.ascontiguousarray(targets, dtype=dtype)
    n = at.shape[1]
    value, force = np.empty(n, dtype=dtype), np.empty((3, n), dtype=dtype)
    softening = SOFTENING * dof / space.forward(1.0, 1.0, omega_norm)[0] ** 2
    # W varies with the direction the faster, the larger the drift: at ω = 0.9 the force errs by
    # 0.69 % without this factor, and by 0.11 % with it
    theta2 = theta**2 * (1.0 - omega_norm**4)
    nodes = (tree.start, tree.stop, tree.skip, tree.centre, tree.side2, tree.reach, tree.root)
    run_rows(
        kernel, n, n_threads, at, alone, tree.point, *nodes, tree.group, theta2, softening,
        constants, value, force, heavy=True,
    )  # fmt: skip
    if alone:
        return value, force
    # W(0) = 2 is each point's own share
    back = np.empty_like(tree.order)
    back[tree.order] = np.arange(n)
    return value[back] - dtype.type(2.0), force[:, back]


@cache
def walk_kernel(even_kernel, kind: int):
    """The walk and the sum for one form of the even kernel.

    ``kernel(start, stop, …)`` serves the groups that begin in rows ``start:stop``.
    """

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )
    def walk(
        first, last, at, alone, point, start, stop, skip, centre, side2, reach, root, group, theta2,
        softening, constants, value, force,
    ):  # fmt: skip
        n_nodes = start.shape[0]
        n_groups = at.shape[1] if alone else group.shape[0]
        x = np.empty(point.shape[1], dtype=point.dtype)
        y = np.empty_like(x)
        z = np.empty_like(x)
        mass = np.empty_like(x)
        omega, inverse_dof, power, one = constants
        g = first if alone else np.searchsorted(start[group], first)
        while g < n_groups:
            head = g if alone else start[group[g]]
            tail = g + 1 if alone else stop[group[g]]
            if head >= last:
                break
            lx, ly, lz = at[0, head], at[1, head], at[2, head]
            hx, hy, hz = lx, ly, lz
            for i in range(head + 1, tail):
                lx, hx = min(lx, at[0, i]), max(hx, at[0, i])
                ly, hy = min(ly, at[1, i]), max(hy, at[1, i])
                lz, hz = min(lz, at[2, i]), max(hz, at[2, i])
            count = 0
            k = 0
            while k < n_nodes:
                cx, cy, cz = centre[k, 0], centre[k, 1], centre[k, 2]
                dx = max(max(lx - cx, cx - hx), 0.0)
                dy = max(max(ly - cy, cy - hy), 0.0)
                dz = max(max(lz - cz, cz - hz), 0.0)
                away2 = dx * dx + dy * dy + dz * dz + softening
                if (
                    stop[k] - start[k] > CORNERS
                    and side2[k] <= theta2 * away2
                    and reach[k] * reach[k] <= away2
                ):
                    quarter = one * (stop[k] - start[k]) / CORNERS
                    for v in range(CORNERS):
                        # vertices of a tetrahedron: +++, +--, -+-, --+
                        sx = 1.0 if v < 2 else -1.0
                        sy = 1.0 if v % 2 == 0 else -1.0
                        sz = sx * sy
                        x[count] = cx + root[k, 0] * sx
                        y[count] = cy + root[k, 1] * sx + root[k, 2] * sy
                        z[count] = cz + root[k, 3] * sx + root[k, 4] * sy + root[k, 5] * sz
                        mass[count] = quarter
                        count += 1
                    k = skip[k]
                elif skip[k] == k + 1 or stop[k] - start[k] <= CORNERS:
                    for j in range(start[k], stop[k]):
                        x[count], y[count], z[count] = point[0, j], point[1, j], point[2, j]
                        mass[count] = one
                        count += 1
                    k = skip[k]
                else:
                    k += 1
            for i in range(head, tail):
                px, py, pz = at[0, i], at[1, i], at[2, i]
                total, fx, fy, fz = one - one, one - one, one - one, one - one
                for e in range(count):
                    ex, ey, ez = px - x[e], py - y[e], pz - z[e]
                    part, along, up = even_kernel(
                        kind, ex * ex + ey * ey + ez * ez, ez, omega, inverse_dof, power, one
                    )
                    total += mass[e] * part
                    fx += mass[e] * along * ex
                    fy += mass[e] * along * ey
                    fz += mass[e] * (along * ez + up)
                value[i], force[0, i], force[1, i], force[2, i] = total, fx, fy, fz
            g += 1

    return walk
