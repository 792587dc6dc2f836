"""Directed data: models of asymmetric distances, orders of nodes, drift fields, times.

    python -m benchmarks.directed stress limits order truth field --data-dir DIR
    python -m benchmarks.directed speed --data-dir DIR
    python -m benchmarks.directed                        results/directed.md, from the stored runs

stress  Every model has three numbers per point. Of the pairs a tenth is held out to choose the
        scaling by and another tenth to judge by: Σ (D − prediction)²/Σ D² in the units of the data.
limits  The share of the asymmetry that any height can show, and the stress of layouts that show it,
        at many drifts and weights of the skew part.
order   Direction of edges held out, and
truth   orders known from elsewhere: `benchmarks.orders`.
field   Share of the asymmetry of pairs held out that one drift and that a drift field explains.
speed   Seconds and memory.

Data come from --data-dir (or FINSLER_DATA) or from their publishers; those that are not to be had
are named and left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from benchmarks.data import load
from benchmarks.data.digraphs import digraph, planted_digraph, strong_part
from benchmarks.directed_page import ANY_HEIGHT, PAGE, write
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.orders import ORDERED, TRUTHS, run_order, run_truth
from benchmarks.peers.mds_peers import radius_distance_mds, slide_vector_mds, symmetric_mds
from benchmarks.peers.printed_smacof import printed_smacof
from finsler_ext import FinslerMDS, FinslerUMAP
from finsler_ext.asymmetry import gradient_share
from finsler_ext.drift_field import fit_drift_field
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.scaling import SCALINGS, Transformation, predictions

__all__ = ["PARTS", "main", "run"]

PARTS = ("stress", "limits", "order", "truth", "field", "speed")
# Distances as given, and shortest paths over the largest strongly connected part of digraphs.
DISTANCES = ("flights", "morse", "velocity")
GRAPHS = (
    "polblogs", "celegans", "email", "airlines", "road:Anaheim", "road:Winnipeg", "road:Barcelona",
    "road:Austin",
)  # fmt: skip
# Rows of the large ones that are drawn for the stress and the field.
MOST_POINTS = 200
NUMBERS = 3  # per point
# Where a third map column fits distances much better than two.
WIDE = ("road:Winnipeg", "road:Austin")
WIDE_WEIGHTS, WIDE_DRIFTS = (1.0, 3.0, 10.0, 30.0, 100.0), (0.02, 0.1, 0.3, 0.9)
HELD_OUT = 0.1
SEEDS = 3
TIMED = (
    "hops:1500", "one-way path:20000", "path:50000", "streets:1500", "streets:5000",
    "streets:50000",
)  # fmt: skip


class Fitted(NamedTuple):
    """Distances of a model between all points, and what they stand for."""

    distances: np.ndarray
    transformation: Transformation
    rises: float = 0.0
    """Share of the steps at which the stress rose."""
    drift: float = float("nan")


def distances_of(name: str, data_dir, seed: int) -> np.ndarray:
    """Directed distances of at most MOST_POINTS points."""
    if name in DISTANCES:
        D = np.asarray(load(name, data_dir=data_dir).X, dtype=np.float64)
    else:
        D = dijkstra(strong_part(digraph(name, data_dir)))
    np.fill_diagonal(D, 0.0)
    rows = np.sort(np.random.default_rng(seed).permutation(len(D))[:MOST_POINTS])
    return np.ascontiguousarray(D[np.ix_(rows, rows)])


# ------------------------------------------------------------------ stress


def fit_randers(D, weights, scaling: str, skew_weight, columns=NUMBERS, omega_norm="auto"):
    model = FinslerMDS(columns, metric="precomputed", omega_norm=omega_norm, scaling=scaling)
    model.set_params(random_state=0, max_iter=1000, skew_weight=skew_weight)
    return model.fit(D, weights=weights)


def randers(D, weights, scaling: str, skew_weight="auto", field=False, **options) -> Fitted:
    if scaling == "ordinal" and skew_weight == "auto":
        raise NotImplementedError("ordinal scaling has one noise level")
    model = fit_randers(D, weights, scaling, skew_weight, **options)
    F = randers_distances(model.embedding_, model.omega_norm_)
    if field:
        F = _with_field(F, model.embedding_, np.where(weights > 0, D, np.nan))
    return Fitted(F, model.transformation_, _rises(model.stress_history_), model.omega_norm_)


def _with_field(F, embedding, known) -> np.ndarray:
    """F with the asymmetry of a drift field, where `fit_drift_field` says that there is one."""
    np.fill_diagonal(known, 0.0)
    field = fit_drift_field(embedding, distances=known)
    if field.case != "field":
        return F
    source, target = np.nonzero(~np.eye(len(F), dtype=bool))
    F = randers_distances(embedding, 0.0)
    F[source, target] += field.skew(embedding, source, target) / 2
    return F


def with_potential(D, weights, scaling: str) -> Fitted:
    """Distances of plain stress, and the asymmetry of `potential_` instead of the height's."""
    if scaling == "ordinal":
        raise NotImplementedError("the potential is that of D itself")
    model = fit_randers(D, weights, scaling, 1.0)
    level = model.potential_ / 2  # of D_ij − D_ji
    F = randers_distances(model.embedding_, 0.0) + level - level[:, None]
    return Fitted(F, model.transformation_, _rises(model.stress_history_), model.omega_norm_)


def _peer(method, n_columns):
    def fit(D, weights, scaling: str) -> Fitted:
        options = {"max_iter": 1000, "random_state": 0}
        found = method(D, n_columns, weights=weights, scaling=scaling, **options)
        return Fitted(found.distances(), found.transformation, _rises(found.stress_history))

    return fit


def printed(D, weights, scaling: str) -> Fitted:
    """The printed SMACOF at the drift and with the constant that FinslerMDS finds."""
    if scaling == "ordinal":
        raise NotImplementedError("the printed update knows no order")
    model = fit_randers(D, weights, scaling, 1.0)
    scaled = np.maximum(model.transformation_.disparities(D), 0.0)
    np.fill_diagonal(scaled, 0.0)
    omega = model.omega_norm_
    found = printed_smacof(scaled, n_components=NUMBERS, omega_norm=omega, weights=weights)
    F = randers_distances(found.embedding, omega)
    return Fitted(F, model.transformation_, _rises(found.stress_history), omega)


MODELS = {
    "Randers": randers,
    "Randers, ω = 0.5": partial(randers, omega_norm=0.5),
    "Randers, plain": partial(randers, skew_weight=1.0),
    "slide vector": _peer(slide_vector_mds, NUMBERS),
    "radius distance": _peer(radius_distance_mds, NUMBERS - 1),
    "symmetric": _peer(symmetric_mds, NUMBERS),
    "printed SMACOF": printed,
    # more numbers: `directed_page.MORE`
    "Randers and its drift field": partial(randers, field=True),
    "Randers, 3 + 1": partial(randers, columns=NUMBERS + 1),
    "Randers, 3 + 1, and field": partial(randers, columns=NUMBERS + 1, field=True),
    "radius distance, 3 + 1": _peer(radius_distance_mds, NUMBERS),
    "Randers, plain, and potential": with_potential,
}


def _rises(history) -> float:
    history = np.asarray(history)
    return float(np.mean(np.diff(history) > 1e-12 * history[:-1])) if len(history) > 1 else 0.0


def stress_scores(model, D: np.ndarray, seed: int, scalings=SCALINGS) -> dict[str, float]:
    """Errors of every scaling on the pairs to choose it by, and on those to judge by."""
    rng = np.random.default_rng(1000 + seed)
    n = len(D)
    draw = np.triu(rng.uniform(size=(n, n)), 1)
    draw = draw + draw.T
    off = ~np.eye(n, dtype=bool)
    choose, judge = (draw < HELD_OUT) & off, (draw >= HELD_OUT) & (draw < 2 * HELD_OUT) & off
    weights = (off & ~choose & ~judge).astype(np.float64)
    scores: dict[str, float] = {}
    for scaling in scalings:
        try:
            found = model(D, weights, scaling)
        except NotImplementedError:
            continue
        told = predictions(found.distances, D, weights, found.transformation)
        for what, pairs in (("choice", choose), ("stress", judge)):
            error = ((D - told)[pairs] ** 2).sum() / (D[pairs] ** 2).sum()
            scores[f"{what} {scaling}"] = float(error)
        a, b = (D - D.T)[judge], (told - told.T)[judge]
        explained = 1 - ((a - b) ** 2).sum() / max((a**2).sum(), 1e-300)
        unequal = (np.abs(a) > 1e-9) & (np.abs(b) > 1e-9)
        sign = float(np.mean(np.sign(a[unequal]) == np.sign(b[unequal]))) if unequal.any() else 0.5
        scores[f"explained {scaling}"], scores[f"sign {scaling}"] = float(explained), sign
        scores[f"rises {scaling}"], scores[f"drift {scaling}"] = found.rises, found.drift
    return scores


def run_stress(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    for seed in range(seeds):
        todo = [m for m in MODELS if not ledger.has(name, m, seed)]
        if todo:
            D = distances_of(name, data_dir, seed)
            for method in todo:
                ledger.add(name, method, seed, stress_scores(MODELS[method], D, seed))


def run_limits(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    for seed in range(seeds):
        D = distances_of(name, data_dir, seed)
        if not ledger.has(name, ANY_HEIGHT, seed):
            ledger.add(name, ANY_HEIGHT, seed, {"explained": gradient_share(D)})
        for weight, omega in product(WIDE_WEIGHTS, WIDE_DRIFTS) if name in WIDE else ():
            method = f"λ = {weight:g}, ω = {omega:g}"
            if not ledger.has(name, method, seed):
                model = partial(randers, skew_weight=weight, omega_norm=omega)
                ledger.add(name, method, seed, stress_scores(model, D, seed, ("interval",)))


# ------------------------------------------------------------------ field


def run_field(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    import umap

    maps = {
        "FinslerMDS, 2 columns": lambda D: (
            FinslerMDS(2, metric="precomputed", omega_norm="auto", scaling="interval")
            .fit(D)
            .embedding_
        ),
        "UMAP, 2 columns": lambda D: umap.UMAP(metric="precomputed", random_state=0).fit_transform(
            (D + D.T) / 2
        ),
    }
    for method, embed in maps.items():
        if not ledger.has(name, method, 0):
            D = distances_of(name, data_dir, 0)
            field = fit_drift_field(embed(D), distances=D)
            scores = {"one drift": field.one_drift_share, "field": field.share}
            ledger.add(name, method, 0, scores | {"numbers": field.n_numbers}, field.case)


# ------------------------------------------------------------------ speed


def street_grid(n: int, seed: int = 0) -> scipy.sparse.csr_array:
    """Minutes along the streets of a town: a grid with one-way streets and a slope."""
    side = int(np.ceil(np.sqrt(n)))
    rng = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    low = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    high = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    minutes = rng.uniform(0.5, 1.5, size=low.size)
    slope = np.where(high - low == 1, 1.2, 1.0)  # eastwards is uphill
    keep = rng.uniform(size=(2, low.size)) > 0.1
    source = np.concatenate([low[keep[0]], high[keep[1]]])
    target = np.concatenate([high[keep[0]], low[keep[1]]])
    length = np.concatenate([(minutes * slope)[keep[0]], (minutes / slope)[keep[1]]])
    graph = scipy.sparse.coo_array((length, (source, target)), shape=(side * side, side * side))
    return strong_part(graph.tocsr())


def one_way_path(n: int) -> scipy.sparse.csr_array:
    return scipy.sparse.diags_array(np.ones(n - 1), offsets=1, format="csr")


def uneven_path(n: int) -> scipy.sparse.csr_array:
    """A path both ways; every step has lengths of its own."""
    lengths = np.random.default_rng(0).uniform(1.0, 2.0, size=(2, n - 1))
    return scipy.sparse.diags_array(list(lengths), offsets=[1, -1], format="csr")


def auto_drift(graph) -> dict:
    model = FinslerMDS(metric="precomputed", omega_norm="auto", n_jobs=-1, random_state=0)
    if np.ptp(graph.data) > 0:
        model.set_params(missing="geodesic")
    model.fit(graph)
    return {"stress": model.normalized_stress_, "drift": model.omega_norm_}


def umap_fit(graph) -> dict:
    model = FinslerUMAP(metric="precomputed", random_state=0).fit(graph)
    height = model.embedding_[:, -1]
    return {"downhill": np.mean(height[:-1] > height[1:])}


# What is timed, on what, and a size that compiles the code beforehand.
SPEED = {
    "streets": ("FinslerMDS", auto_drift, street_grid, 200),
    "hops": ("FinslerMDS", auto_drift, lambda n: planted_digraph(n, 8)[0], 200),
    "one-way path": ("FinslerUMAP", umap_fit, one_way_path, 200),
    "path": ("gradient_share", lambda D: {"share": gradient_share(D)}, uneven_path, 200),
}


def run_speed(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    import resource

    kind, _, size = name.partition(":")
    what, work, make, small = SPEED[kind]
    if ledger.has(name, what, 0):
        return
    work(make(small))
    graph = make(int(size))
    start, used = time.perf_counter(), time.process_time()
    scores = {"nodes": graph.shape[0]} | work(graph)
    scores |= {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ledger.add(name, what, 0, scores | {"peak GB": peak})


RUNS = {
    "stress": (run_stress, (*DISTANCES, *GRAPHS)),
    "limits": (run_limits, (*DISTANCES, *GRAPHS)),
    "order": (run_order, ORDERED),
    "truth": (run_truth, TRUTHS),
    "field": (run_field, (*DISTANCES, *GRAPHS)),
    "speed": (run_speed, TIMED),
}


def run(parts, data_dir, results: Path, seeds: int = SEEDS, names=None) -> list[str]:
    """Run what is not there yet; returns what could not be had."""
    missing = []
    for part in parts:
        one, known = RUNS[part]
        for name in known if names is None else [name for name in known if name in names]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    one(Ledger(results / f"directed_{part}.csv"), name, data_dir, seeds)
            except FileNotFoundError as error:
                missing.append(f"{part} of {name}: {error}")
    return missing


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.directed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--data-dir", help="folder of local copies")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--output", type=Path, help="the page (results/directed.md)")
    options = parser.parse_args(argv)
    for line in run(options.parts, options.data_dir, options.results, options.seeds, options.data):
        print(line, file=sys.stderr)
    found = {part: read_runs([options.results / f"directed_{part}.csv"]) for part in PARTS}
    write(found, options.output or PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
