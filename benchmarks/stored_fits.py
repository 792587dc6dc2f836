"""Some sixty small fits, and one hash for each: does a change leave every embedding as it was?

    python -m benchmarks.stored_fits --save before.json       # on the old version
    python -m benchmarks.stored_fits --against before.json    # on the new one, same machine

Hashes are of the bytes of the embedding, so they compare on one machine with one set of packages
only. The list covers the three estimators, every method of each, directed and density data, held
and free heights, "auto", transform, update, a series of maps and the spectral methods.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse

__all__ = ["fits", "main"]

ROWS, NEW_ROWS = 220, 12
# Enough points for the tree of t-SNE, and for the search for neighbours by NN-descent.
TREE_ROWS, SEARCH_ROWS = 1100, 4300
EPOCHS = 60

Fits = dict[str, Callable[[], np.ndarray]]


@cache
def _blobs(rows: int = ROWS + NEW_ROWS, columns: int = 6) -> np.ndarray:
    rng = np.random.default_rng(17)
    centre = rng.normal(scale=4.0, size=(5, columns))
    part = rng.integers(5, size=rows)
    spread = np.array([0.3, 0.5, 0.8, 1.2, 2.0])[part]
    return (centre[part] + spread[:, None] * rng.normal(size=(rows, columns))).astype(np.float32)


@cache
def _directed(rows: int = ROWS) -> np.ndarray:
    """Distances over a plane with a drift, and some noise."""
    rng = np.random.default_rng(18)
    place = rng.normal(size=(rows, 3))
    step = place[None, :, :] - place[:, None, :]
    D = np.linalg.norm(step, axis=-1) + 0.4 * step[..., -1]
    D *= np.exp(0.05 * rng.normal(size=D.shape))
    np.fill_diagonal(D, 0.0)
    return D


def _near(D: np.ndarray, k: int = 25) -> scipy.sparse.csr_matrix:
    order = np.argsort(D, axis=1)[:, 1 : k + 1]
    rows = np.repeat(np.arange(len(D)), k)
    return scipy.sparse.csr_matrix((D[rows, order.ravel()], (rows, order.ravel())), shape=D.shape)


def _uneven(x, y) -> float:
    """An asymmetric metric."""
    return float(np.sqrt(((x - y) ** 2).sum()) * (1.3 if y[0] > x[0] else 1.0))


def _umap(X=None, then=None, y=None, **options):
    from finsler_ext import FinslerUMAP

    X = _blobs()[:ROWS] if X is None else X
    options = {"n_epochs": EPOCHS, "random_state": 3, "n_jobs": 2} | options
    model = FinslerUMAP(**options).fit(X, y)
    return np.asarray(model.embedding_ if then is None else then(model))


def _tsne(X=None, then=None, **options):
    from finsler_ext import FinslerTSNE

    X = _blobs()[:ROWS] if X is None else X
    options = {
        "n_iter": EPOCHS, "early_exaggeration_iter": 30, "random_state": 3, "n_jobs": 2,
    } | options  # fmt: skip
    model = FinslerTSNE(**options).fit(X)
    return np.asarray(model.embedding_ if then is None else then(model))


def _mds(X=None, then=None, weights=None, **options):
    from finsler_ext import FinslerMDS

    X = _blobs()[:ROWS].astype(np.float64) if X is None else X
    options = {"max_iter": EPOCHS, "random_state": 3, "n_jobs": 2} | options
    model = FinslerMDS(**options).fit(X, weights=weights)
    return np.asarray(model.embedding_ if then is None else then(model))


def _update(model):
    return model.update(_blobs()[ROWS:]).embedding_


def _transform(model):
    return model.transform(_blobs()[ROWS:])


def _between(model):
    D = _directed()
    return model.transform(D[:NEW_ROWS] * 1.01, incoming=D.T[:NEW_ROWS] * 1.01)


def _umap_fits() -> Fits:
    D = _directed()
    scale = np.exp(_blobs()[:, 0] / 4.0)
    named = partial_fits(_umap)
    return named(
        {
            "umap": {},
            "umap float64": {"X": _blobs()[:ROWS].astype(np.float64)},
            "umap 2 columns": {"n_components": 2},
            "umap 4 columns": {"n_components": 4},
            "umap free": {"height": "free"},
            "umap no drift": {"omega_norm": 0.0},
            "umap drift 0.9": {"omega_norm": 0.9},
            "umap auto": {"omega_norm": "auto"},
            "umap harmonic": {"affinity": "harmonic"},
            "umap fuzzy union": {"affinity": "fuzzy_union"},
            "umap geodesic": {"geodesic_neighbors": 30},
            "umap local scale": {"local_scale": scale[:ROWS]},
            "umap supervised": {"y": (_blobs()[:ROWS, 1] > 0).astype(int)},
            "umap manhattan": {"metric": "manhattan"},
            "umap asymmetric metric": {"X": _blobs()[:90], "metric": _uneven},
            "umap sparse rows": {"X": scipy.sparse.csr_matrix(np.maximum(_blobs()[:ROWS], 0))},
            "umap random start": {"init": "random"},
            "umap directed": {"X": D, "metric": "precomputed"},
            "umap directed sparse": {"X": _near(D), "metric": "precomputed"},
            "umap directed auto": {"X": D, "metric": "precomputed", "omega_norm": "auto"},
            "umap search": {"X": _blobs(SEARCH_ROWS), "n_epochs": 20},
            "umap transform": {"then": _transform},
            "umap transform directed": {"X": D, "metric": "precomputed", "then": _between},
            "umap update": {"then": _update},
            "umap inverse": {"then": lambda m: m.inverse_transform(m.embedding_[:NEW_ROWS])},
        }
    ) | {"umap series": _series}


def _series() -> np.ndarray:
    """Two data sets that share rows, and a third that is added."""
    from finsler_ext import AlignedFinslerUMAP, FinslerUMAP

    X, Y = _blobs()[:80], _blobs()[20:100]
    same = {i: i - 20 for i in range(20, 80)}
    estimator = FinslerUMAP(n_epochs=EPOCHS, random_state=3, n_jobs=2)
    series = AlignedFinslerUMAP(estimator).fit([X, Y], relations=[same])
    return np.concatenate(series.update(Y[5:], relations={5 + i: i for i in range(75)}).embeddings_)


def _tsne_fits() -> Fits:
    D = _directed()
    named = partial_fits(_tsne)
    return named(
        {
            "tsne": {},
            "tsne 2 columns": {"n_components": 2},
            "tsne 4 columns": {"n_components": 4},
            "tsne free": {"height": "free"},
            "tsne no drift": {"omega_norm": 0.0},
            "tsne auto": {"omega_norm": "auto"},
            "tsne dof 2": {"dof": 2},
            "tsne dof 0.7": {"dof": 0.7},
            "tsne dof 3": {"dof": 3},
            "tsne tree": {"X": _blobs(TREE_ROWS), "negative_gradient_method": "bh"},
            "tsne grid": {"n_components": 2, "negative_gradient_method": "fft"},
            "tsne symmetrized": {"affinity": "symmetrized"},
            "tsne spectral start": {"initialization": "spectral"},
            "tsne directed": {"X": D, "metric": "precomputed"},
            "tsne directed sparse": {"X": _near(D, 100), "metric": "precomputed"},
            "tsne transform": {"then": _transform},
            "tsne transform directed": {"X": D, "metric": "precomputed", "then": _between},
        }
    ) | {"opentsne phases": _opentsne}


def _opentsne() -> np.ndarray:
    from finsler_ext.tsne.opentsne import OpenFinslerTSNE

    start = OpenFinslerTSNE(random_state=3, n_jobs=2).prepare_initial(_blobs()[:ROWS])
    return np.asarray(start.optimize(n_iter=30, exaggeration=12).optimize(n_iter=30))


def _mds_fits() -> Fits:
    D = _directed()
    rng = np.random.default_rng(19)
    weights = rng.uniform(0.5, 1.5, size=D.shape)
    one_way = np.where(rng.random(D.shape) < 0.3, np.nan, D)
    np.fill_diagonal(one_way, 0.0)
    directed = {"X": D, "metric": "precomputed"}
    named = partial_fits(_mds)
    return named(
        {
            "mds": {},
            "mds float32": {"X": _blobs()[:ROWS]},
            "mds gradient": {"method": "gd"},
            "mds no drift": {"omega_norm": 0.0},
            "mds no scale": {"source_scale": "none"},
            "mds isomap start": {"init": "isomap"},
            "mds random starts": {"init": "random", "n_init": 2},
            "mds directed": directed,
            "mds directed auto": directed | {"omega_norm": "auto"},
            "mds directed columns": directed | {"n_components": "auto"},
            "mds directed weights": directed | {"weights": weights + weights.T},
            "mds directed own weights": directed | {"weights": weights},
            "mds directed own weights gradient": directed | {"weights": weights, "method": "gd"},
            "mds one way": {"X": one_way, "metric": "precomputed"},
            "mds one way auto": {"X": one_way, "metric": "precomputed", "omega_norm": "auto"},
            "mds transform": {"then": _transform},
            "mds transform directed": directed | {"then": _between},
        }
    )


def _spectral_fits() -> Fits:
    from finsler_ext import spectral

    D = _directed()[:60, :60]
    affinity = np.exp(-D)
    steps = affinity / affinity.sum(axis=1, keepdims=True)
    weights = spectral.lle_weights(_blobs()[:60].astype(np.float64), 10)
    return {
        "spectral isomap": lambda: spectral.finsler_isomap(D).embedding,
        "spectral eigenmaps": lambda: spectral.finsler_laplacian_eigenmaps(affinity).embedding,
        "spectral diffusion": lambda: spectral.finsler_diffusion_maps(steps).embedding,
        "spectral lle": lambda: spectral.finsler_lle(weights).embedding,
    }


def partial_fits(fit: Callable[..., np.ndarray]) -> Callable[[dict[str, dict]], Fits]:
    """A function from options by name to fits by name."""
    return lambda options: {
        name: lambda chosen=chosen: fit(**chosen)  # type: ignore[misc]
        for name, chosen in options.items()
    }


def fits() -> Fits:
    """All fits by name; none has run yet."""
    return _umap_fits() | _tsne_fits() | _mds_fits() | _spectral_fits()


def hashes(chosen: Fits) -> Iterator[tuple[str, str]]:
    for name, fit in chosen.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.ascontiguousarray(fit())
        print_of = f"{array.dtype}{array.shape}".encode() + array.tobytes()
        yield name, hashlib.sha256(print_of).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", type=Path, help="write the hashes to this file")
    parser.add_argument("--against", type=Path, help="compare with the hashes in this file")
    parser.add_argument("--only", default="", help="fits whose name contains this")
    options = parser.parse_args(arguments)
    stored = json.loads(options.against.read_text()) if options.against else {}
    chosen = {name: fit for name, fit in fits().items() if options.only in name}
    found, changed = {}, 0
    for name, value in hashes(chosen):
        found[name] = value
        verdict = ""
        if stored:
            verdict = "new" if name not in stored else "equal"
            if stored.get(name, value) != value:
                verdict, changed = "CHANGED", changed + 1
        print(f"{name:36s} {value[:16]}  {verdict}", flush=True)
    print(f"{len(found)} fits" + (f", {changed} changed" if stored else ""))
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
