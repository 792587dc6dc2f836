"""Is the evidence right? False positives, power, coverage, verdicts, cost, and what a user reads.

    python -m benchmarks.evidence null --sets 1000
    python -m benchmarks.evidence power
    python -m benchmarks.evidence coverage
    python -m benchmarks.evidence verdicts --data-dir DIR
    python -m benchmarks.evidence shuffled --data-dir DIR
    python -m benchmarks.evidence cost --sizes 2000 10000 100000
    python -m benchmarks.evidence auto
    python -m benchmarks.evidence sphere

Each prints a table. Nothing is fitted by "null", "power", "coverage" and "shuffled".
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from benchmarks import data
from benchmarks.data.files import read
from finsler_ext import FinslerTSNE, FinslerUMAP, base
from finsler_ext.evidence import (
    LEVEL,
    density_evidence,
    direction_evidence,
    measured_pairs,
    potential_error,
    scale_error,
    velocity_evidence,
)

ROUTE = "benchmarks/data/README.md"
NEIGHBORS = 14  # what FinslerUMAP has by default


def neighbours(X, k: int = NEIGHBORS):
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return indices, distances


# Data without, or with as much, density or direction as is planted.


def sphere(n, d, rng):
    X = rng.normal(size=(n, d + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def torus(n, d, rng, turns=None):
    turns = rng.uniform(size=(n, d)) if turns is None else turns
    return np.hstack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])


def digraph(n, degree, rng, level=0.0):
    """Every pair is joined by chance, and the higher end is the source by a logistic chance."""
    source, target = np.nonzero(np.triu(rng.random((n, n)) < degree / n, 1))
    level = np.broadcast_to(level, n)
    down = rng.random(source.size) < 1 / (1 + np.exp(level[target] - level[source]))
    ends = np.where(down, source, target), np.where(down, target, source)
    return scipy.sparse.csr_array((np.ones(source.size), ends), shape=(n, n))


def tournament(n, rng):
    return digraph(n, n, rng)


def distances(n, rng, level=0.0, noise=0.1):
    X = rng.normal(size=(n, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2) + noise * rng.normal(size=(n, n)) + 10 * noise
    level = np.broadcast_to(level, n)
    return D + (level - level[:, None]) / 2


def random_digraph(n, degree, rng):
    """Both directions of a pair by chance."""
    edges = rng.random((n, n)) < degree / n
    np.fill_diagonal(edges, False)
    return scipy.sparse.csr_array(edges.astype(float))


FAMILIES = {
    "spheres S¹ to S⁹, 100 to 600 points": lambda r: density_evidence(
        *neighbours(sphere(r.choice([100, 200, 400, 600]), r.choice([1, 2, 3, 5, 9]), r))
    ),
    "flat tori in 1 to 4 dimensions": lambda r: density_evidence(
        *neighbours(torus(r.choice([100, 200, 400, 600]), r.choice([1, 2, 3, 4]), r))
    ),
    "spheres with the 90 neighbours of t-SNE": lambda r: density_evidence(
        *neighbours(sphere(r.choice([300, 600]), r.choice([2, 3, 5, 9]), r), 90)
    ),
    "random digraphs, 40 to 160 nodes": lambda r: direction_evidence(
        random_digraph(r.choice([40, 80, 160]), r.choice([3, 6, 12]), r)
    ),
    "random tournaments, 10 to 60": lambda r: direction_evidence(tournament(r.integers(10, 60), r)),
    "symmetric distances with noise": lambda r: direction_evidence(
        distances(r.choice([15, 30, 60]), r, noise=r.choice([0.01, 0.1, 1.0]))
    ),
    "symmetric edges with noise, before shortest paths": lambda r: direction_evidence(
        _noisy_edges(r.choice([40, 80]), r)
    ),
    "velocities that are noise": lambda r: _velocity(r, 0.0),
    "cubes in 2 dimensions (they have edges)": lambda r: density_evidence(
        *neighbours(r.random((r.choice([200, 400]), 2)))
    ),
    "cubes in 3 dimensions (edges)": lambda r: density_evidence(
        *neighbours(r.random((r.choice([200, 400]), 3)))
    ),
    "cubes in 5 dimensions (edges)": lambda r: density_evidence(
        *neighbours(r.random((r.choice([200, 400]), 5)))
    ),
    "Gaussians in 2 to 5 dimensions (density varies)": lambda r: density_evidence(
        *neighbours(r.normal(size=(r.choice([200, 400]), r.choice([2, 3, 5]))))
    ),
}


def _noisy_edges(n, rng):
    """The nearest neighbours of points in a plane, their distances measured twice."""
    X = rng.normal(size=(n, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.sort(D, axis=1)[:, [6]] > D
    D[~(near | near.T)] = np.nan
    return D * np.exp(0.2 * rng.normal(size=(n, n)))


def _velocity(rng, size):
    X = rng.normal(size=(200, 4))
    V = size * X[:, [1, 0, 3, 2]] + rng.normal(size=X.shape)
    return velocity_evidence(neighbours(X, 15)[0], X, V)


def null(options) -> None:
    print("| data without density or direction | sets | more than chance | between neighbours |")
    print("| --- | --- | --- | --- |")
    for name, make in FAMILIES.items():
        rng = np.random.default_rng(options.seed)
        found = [make(rng) for _ in range(options.sets)]
        called = np.array([e.p_value < LEVEL for e in found])
        near = np.array([e.p_value < LEVEL and e.held_out.sign >= 0.6 for e in found])
        print(f"| {name} | {options.sets} | {called.mean():.1%} | {near.mean():.1%} |", flush=True)


def power(options) -> None:
    """Found in what share of draws, by size of what is planted."""

    def step(n, ratio, rng):
        turns = rng.uniform(size=(n, 2))
        dense = rng.random(n) < ratio / (1 + ratio)
        turns[:, 0] = turns[:, 0] / 2 + np.where(dense, 0.0, 0.5)
        return density_evidence(*neighbours(torus(n, 2, rng, turns)))

    def planted(make):
        return lambda n, size, rng: direction_evidence(make(n, size, rng))

    cases = {
        "density step on a torus, ratio": (step, (200, 500, 2000), (1.1, 1.25, 1.5, 2, 3, 4)),
        "potential of distances, sd / noise": (
            planted(lambda n, size, rng: distances(n, rng, size * rng.normal(size=n), 1.0)),
            (20, 50, 150),
            (0.1, 0.2, 0.3, 0.5, 1.0),
        ),
        "potential of a digraph of degree 6, slope": (
            planted(lambda n, size, rng: digraph(n, 6, rng, size * rng.normal(size=n))),
            (50, 200, 800),
            (0.25, 0.5, 1.0, 2.0),
        ),
        "velocities, field / noise": (
            lambda n, size, rng: _velocity(rng, size),
            (200,),
            (0.05, 0.1, 0.2, 0.4, 0.8),
        ),
    }
    for name, (make, points, sizes) in cases.items():
        print(f"\n| {name} | {' | '.join(f'{s:g}' for s in sizes)} | 80 % at |")
        print("| --- |" + " --- |" * (len(sizes) + 1))
        for n in points:
            rng = np.random.default_rng(options.seed)
            shares = [
                np.mean([make(n, s, rng).p_value < LEVEL for _ in range(options.draws)])
                for s in sizes
            ]
            at = (
                np.interp(0.8, np.maximum.accumulate(shares), sizes)
                if max(shares) > 0.8
                else np.nan
            )
            cells = " | ".join(f"{share:.0%}" for share in shares)
            print(f"| {n} points | {cells} | {at:.2g} |", flush=True)


def coverage(options) -> None:
    """Share of 90 % intervals that hold the mean over redraws of the data."""
    print("| planted potential | points | size or noise | coverage |\n| --- | --- | --- | --- |")

    def covered(make, n_redraws):
        found, error = zip(*(make() for _ in range(n_redraws)), strict=True)
        apart = np.abs(np.array(found) - np.nanmean(found, axis=0))
        known = np.isfinite(apart)
        return np.mean((apart < 1.645 * np.array(error))[known])

    rng = np.random.default_rng(options.seed)
    cases = []
    for n in (15, 40, 120):
        for noise in (0.1, 1.0, 5.0):
            level = rng.normal(size=n)

            def matrix(n=n, noise=noise, level=level):
                return potential_error(measured_pairs(distances(n, rng, level, noise)))[:2]

            cases.append(("distances of all pairs", n, f"noise {noise:g}", matrix))
    for n in (40, 120):
        for degree in (6, 15):
            for slope in (0.0, 0.5, 2.0):
                level = slope * rng.normal(size=n)

                def graph(n=n, degree=degree, level=level):
                    return potential_error(measured_pairs(digraph(n, degree, rng, level)))[:2]

                cases.append((f"digraph of degree {degree}", n, f"slope {slope:g}", graph))
    shapes = {
        "density of a Gaussian in 2-D": lambda n: rng.normal(size=(n, 2)),
        "density of a Gaussian in 10-D": lambda n: rng.normal(size=(n, 10)),
        "density rising along a strip": lambda n: np.c_[9 * rng.random(n) ** 2, rng.random(n)],
    }
    for name, draw in shapes.items():
        for n in (300, 2000):
            places = draw(30)

            def rows(n=n, draw=draw, places=places):
                found = scale_error(*neighbours(np.vstack([places, draw(n - 30)])))
                return found.potential[:30], found.error[:30]

            cases.append((name, n, "", rows))
    for name, n, size, make in cases:
        print(f"| {name} | {n} | {size} | {covered(make, options.draws):.1%} |", flush=True)


SETS = (
    "digits",
    "iris",
    "mnist:3000",
    "fashion_mnist:3000",
    "kmnist:3000",
    "emnist_balanced:3000",
    "imagenette:3000",
    "caltech101:3000",
    "flowers102:3000",
    "dtd10",
    "pbmc68k",
    "us_cities",
    "us_zip",
    "disk",
    "swiss_roll",
    "clusters",
    "blobs:3000",
    "flights_direct",
    "flights",
    "morse",
    "polblogs",
    "velocity",
)


def verdicts(options) -> None:
    print("| data | points | p | reliability near, far | held out: sign, rank | fit | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    known = data.known_names()
    for spec in options.names or [s for s in SETS if s.partition(":")[0] in known]:
        try:
            found = data.load(spec, data_dir=options.data_dir, download=False)
        except FileNotFoundError:
            print(f"| {spec} | not there |", flush=True)
            continue
        _print_verdict(spec, found.X, metric=found.metric)
    if not options.names:
        for name, graph in _graphs(options.data_dir):
            _print_verdict(name, graph, metric="precomputed", omega_norm=0.9)
    rng = np.random.default_rng(0)
    if not options.names:
        _print_verdict("sphere, 1000 uniform", sphere(1000, 2, rng))
        _print_verdict("torus, 1000 uniform", torus(1000, 2, rng))
        _print_verdict("Gauss 2-D, 1000", rng.normal(size=(1000, 2)))
        _print_verdict("Gauss 10-D, 1000", rng.normal(size=(1000, 10)))
        _print_verdict("cube 3-D, 1000", rng.random((1000, 3)))


def _graphs(data_dir):
    """Directed graphs as they were measured: links, synapses, imports, citations."""
    blogs = read("polblogs", data_dir, ("edges", "n"), route=ROUTE)
    yield "polblogs, links", _graph(*blogs["edges"].T, int(blogs["n"]))
    worm = read("worm_connectomes", data_dir, ("cook2019_chem",), route=ROUTE)["cook2019_chem"]
    source, target = np.nonzero(worm)
    yield "worm, synapses", _graph(source, target, len(worm), 1.0 / worm[source, target])
    imports = read(
        "import_graphs", data_dir, ("pkg", "edges", "node_offsets", "edge_offsets"), route=ROUTE
    )
    nodes, ends = imports["node_offsets"], imports["edge_offsets"]
    for part, name in enumerate(imports["pkg"]):
        source, target = imports["edges"][ends[part] : ends[part + 1]].T
        first = nodes[part] if source.min() >= nodes[part] else 0
        n = nodes[part + 1] - nodes[part]
        yield f"imports of {name}", _graph(source - first, target - first, n)
    cited = read("citations", data_dir, ("src", "dst", "month"), route=ROUTE)
    yield "citations", _graph(cited["src"], cited["dst"], len(cited["month"]))


def _graph(source, target, n, lengths=None):
    """The graph without loops, double edges and nodes that have no edge."""
    proper = source != target
    lengths = np.ones(len(source)) if lengths is None else lengths
    edges = lengths[proper], (source[proper], target[proper])
    graph = scipy.sparse.csr_array(scipy.sparse.coo_array(edges, shape=(n, n)))
    if lengths.min() == lengths.max():
        graph.data[:] = 1.0
    used = np.flatnonzero(np.bincount(np.concatenate(edges[1]), minlength=n))
    return scipy.sparse.csr_matrix(graph[used][:, used])


def _print_verdict(name, X, **settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FinslerUMAP(random_state=0, **settings).fit(X)
    e = model.evidence_
    near, far = (f"{r:.2f}" for r in e.reliability)
    print(
        f"| {name} | {len(model.embedding_)} | {e.p_value:.2g} | {near}, {far} | "
        f"{e.held_out.sign:.2f}, {e.held_out.rank:.2f} | {e.shown:.2f} | {e.summary} |",
        flush=True,
    )


def shuffled(options) -> None:
    """Velocities of cells, and the same shuffled among the cells."""
    pancreas = read("pancreas_velocity", options.data_dir, ("X_pca", "velocity_pca"), route=ROUTE)
    gyrus = read("sc_velocity_cellrank200", options.data_dir, ("X", "V"), route=ROUTE)
    sets = {
        "pancreas": (pancreas["X_pca"], pancreas["velocity_pca"]),
        "dentate gyrus": (gyrus["X"], gyrus["V"]),
    }
    for name, (X, V) in sets.items():
        indices = neighbours(X, 15)[0]
        found = velocity_evidence(indices, X, V)
        rng = np.random.default_rng(options.seed)
        called = [
            velocity_evidence(indices, X, rng.permutation(V)).more_than_chance
            for _ in range(options.draws)
        ]
        print(
            f"{name}: p = {found.p_value:.3f}, held out {found.held_out.sign:.2f}; shuffled "
            f"{options.draws} times: abstains in {1 - np.mean(called):.0%}",
            flush=True,
        )


def cost(options) -> None:
    """Processor time of the evidence within a fit, and of the errors of heights when asked for."""
    print("| estimator | rows | fit, processor s | evidence, s | share | height_error_, s |")
    print("| --- | --- | --- | --- | --- | --- |")
    spent = []

    def timed(*given):
        started = time.process_time()
        found = find_evidence(*given)
        spent.append(time.process_time() - started)
        return found

    find_evidence, base.find_evidence = base.find_evidence, timed
    rng = np.random.default_rng(0)
    for estimator in (FinslerUMAP, FinslerTSNE):
        FinslerUMAP(random_state=0).fit(rng.normal(size=(300, 5)))  # compiles
        for n in options.sizes:
            if estimator is FinslerTSNE and n > options.most_tsne:
                continue
            size = rng.choice([0.5, 1.0, 2.0], size=(n, 1))
            X = size * rng.normal(size=(n, 20)) + 4 * rng.integers(0, 3, size=(n, 1))
            started = time.process_time()
            model = estimator(random_state=0).fit(X)
            whole = time.process_time() - started
            started = time.process_time()
            _ = model.height_error_
            asked = time.process_time() - started
            print(
                f"| {estimator.__name__} | {n} | {whole:.1f} | {spent[-1]:.2f} | "
                f"{spent[-1] / whole:.1%} | {asked:.2f} |",
                flush=True,
            )
    base.find_evidence = find_evidence


def auto(options) -> None:
    """Which drift is best by data that a height was not made from.

    Graph and layout are made of half of the rows; the height is compared with their mean distance
    to 14 rows of the other half, over neighbour pairs.
    """
    from scipy.stats import spearmanr
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    rng = np.random.default_rng(0)
    sets = {
        "digits": load_digits().data,
        "wine": load_wine().data / load_wine().data.std(axis=0),
        "breast cancer": load_breast_cancer().data / load_breast_cancer().data.std(axis=0),
        "Gauss 10-D": rng.normal(size=(1500, 10)),
        "Gauss 2-D": rng.normal(size=(1500, 2)),
        "sphere": sphere(1500, 2, rng),
    }
    drifts = (0.3, 0.5, 0.7, 0.9)
    print("| held-out rank | " + " | ".join(f"{w:g}" for w in drifts) + " | auto |")
    print("| --- |" + " --- |" * (len(drifts) + 1))
    for name, X in sets.items():
        order = rng.permutation(len(X))
        made, held = X[order[::2]], X[order[1::2]]
        search = NearestNeighbors(n_neighbors=NEIGHBORS).fit(held)
        truth = np.log(search.kneighbors(made)[0].mean(axis=1))
        indices = neighbours(made)[0]

        def rank(model, truth=truth, indices=indices):
            height = np.asarray(model.embedding_)[:, -1]
            rise, asked = (np.ravel(v[indices] - v[:, None]) for v in (height, truth))
            both = (np.concatenate([v, -v]) for v in (rise, asked))
            return spearmanr(*both).statistic

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranks = [rank(FinslerUMAP(omega_norm=w, random_state=0).fit(made)) for w in drifts]
            model = FinslerUMAP(omega_norm="auto", random_state=0).fit(made)
        cells = " | ".join(f"{r:.2f}" for r in ranks)
        print(f"| {name} | {cells} | {model.omega_norm_:g} |", flush=True)


def read_by_a_user(options) -> None:
    """README's ten lines with a uniform sphere in place of the digits, and with the digits."""
    from sklearn.datasets import load_digits

    for name, X in (
        ("sphere", sphere(1000, 2, np.random.default_rng(0))),
        ("digits", load_digits().data),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = FinslerUMAP(random_state=0)
            model.fit_transform(X)
        print(f"{name}\n  print(model.evidence_): {model.evidence_}")
        for note in caught:
            print(f"  {note.category.__name__}: {note.message}")
        print(f"  {model.skew_fidelity_}")
        print(f"  heights that are not sure: {model.height_unsure_.mean():.0%}")


TABLES = {
    "null": null,
    "power": power,
    "coverage": coverage,
    "verdicts": verdicts,
    "shuffled": shuffled,
    "cost": cost,
    "auto": auto,
    "sphere": read_by_a_user,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("names", nargs="*", help="data sets of 'verdicts'")
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 10_000, 100_000])
    parser.add_argument("--most-tsne", type=int, default=10_000)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
