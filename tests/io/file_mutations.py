"""Files with one thing wrong: every array and every number of every kind of model, one at a time.

Checksums are redone, so that nothing but the meaning of a file can be wrong. A mutation is hostile
if it changes the shape or the type of an array or the type of a number, puts nan, an infinity or an
index outside the data in place of a finite value, −1 in place of a number that is never negative
(only the slope of heights that are not settled is), or an unknown word in place of one that a file
chooses from a list. It is plausible otherwise: such a file is another model. A silent difference is
a hostile file that loads and gives other places; a raw error is any but ValueError.

    python -m tests.io.file_mutations            # all of them, and the counts
    python -m tests.io.file_mutations 4 umap mds  # every fourth, of these kinds of models

Files are read in processes of their own: a crash is counted, and the next process goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse

# Seconds after which reading a file and placing four rows counts as a hang.
PATIENCE = 120
# Words for people; a file may hold any. Items are names of rows and columns.
FREE_TEXT = ("reason",)
NAN, INF = {"is": "float", "value": "nan"}, {"is": "float", "value": "inf"}


class Mutation(NamedTuple):
    where: str
    what: str
    hostile: bool
    content: bytes


# ------------------------------------------------------------------ models


def rows(n=60, d=4):
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def directed(n=40):
    rng = np.random.default_rng(0)
    points, level = rng.normal(size=(n, 2)), rng.normal(size=n)
    D = np.linalg.norm(points[:, None] - points, axis=2)
    return D * np.exp(0.3 * (level[None] - level[:, None]))


def digraph(n=40):
    rng = np.random.default_rng(1)
    edges = scipy.sparse.random_array((n, n), density=0.1, rng=rng, format="csr")
    edges.setdiag(0)
    edges.eliminate_zeros()
    return edges + scipy.sparse.diags_array(np.ones(n - 1), offsets=1).tocsr()


class Series:
    """Fits the same rows twice, the second time with a few of them moved."""

    def __init__(self, series):
        self.series = series

    def fit(self, X):
        return self.series.fit(
            [X, np.vstack([X[:50], X[50:] + 1])], relations=[{i: i for i in range(50)}]
        )


class Combined:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def fit(self, X):
        return self.left.fit(X) + self.right.fit(X)


def kinds() -> dict[str, tuple]:
    """Name: model, what it is fitted to, new rows, keywords of transform (None: it has none)."""
    from finsler_ext import AlignedFinslerUMAP, FinslerMDS, FinslerTSNE, FinslerUMAP
    from finsler_ext.tsne.opentsne import OpenFinslerTSNE

    def umap(**kwds):
        return FinslerUMAP(**({"n_epochs": 15, "random_state": 0, "n_neighbors": 8} | kwds))

    def tsne(**kwds):
        few = {"n_iter": 10, "early_exaggeration_iter": 10, "perplexity": 6, "random_state": 0}
        return FinslerTSNE(**(few | kwds))

    def mds(**kwds):
        return FinslerMDS(**({"max_iter": 10, "random_state": 0, "n_neighbors": 8} | kwds))

    X, D, E = rows(), directed(), digraph()
    new, few, scale = X[:4] + np.float32(0.05), {"n_iter": 10}, np.linspace(1, 2, len(X))
    ways, sparse = {"incoming": D[:4].copy() + 0.02}, scipy.sparse.csr_matrix(np.where(X > 0, X, 0))
    edges = scipy.sparse.csr_array(E[[0, 1, 2, 3]])
    return {
        "umap": (umap(), X, new, {}),
        "umap auto": (umap(omega_norm="auto"), X, new, {}),
        "umap unique": (umap(unique=True), np.vstack([X, X[:9]]), new, {}),
        "umap scale": (umap(local_scale=scale), X, new, {"local_scale": scale[:4]}),
        "umap geodesic": (umap(geodesic_neighbors=20), X, new, {}),
        "umap far away": (umap(), 1e6 + X.astype(float), 1e6 + new, {}),
        "umap sparse": (umap(), sparse, scipy.sparse.csr_matrix(new), {}),
        "umap minkowski": (umap(metric="minkowski", metric_kwds={"p": 3}), X, new, {}),
        "umap directed": (umap(metric="precomputed"), D, D[:4] + 0.01, ways),
        "umap digraph": (umap(metric="precomputed"), E, edges, {"incoming": edges}),
        "umap kmeans graph": (umap(force_approximation_algorithm=True), X, new, {}),
        "umap NN-descent": (
            umap(force_approximation_algorithm=True, metric="manhattan"), X, new, {}
        ),
        "umap graph": (umap(transform_mode="graph"), X, new, {}),
        "tsne": (tsne(), X, new, few),
        "tsne scales": (tsne(perplexity=[4, 6], affinity="harmonic"), X, new, few),
        "tsne scale": (tsne(local_scale=scale), X, new, few | {"local_scale": scale[:4]}),
        "tsne tree": (tsne(negative_gradient_method="bh"), X, new, few),
        "tsne sparse": (
            tsne(initialization="random"), sparse, scipy.sparse.csr_matrix(new), few
        ),
        "tsne directed": (tsne(metric="precomputed"), D, D[:4] + 0.01, ways | few),
        "tsne annoy": (tsne(neighbors="annoy"), X, new, few),
        "mds": (mds(), X, new, {}),
        "mds auto": (mds(omega_norm="auto", n_components="auto"), X, new, {}),
        "mds scale": (mds(local_scale=scale), X, new, {"local_scale": scale[:4]}),
        "mds sparse": (mds(), sparse, scipy.sparse.csr_matrix(new), {}),
        "mds directed": (mds(metric="precomputed"), D, D[:4] + 0.01, ways),
        "mds ordinal": (mds(metric="precomputed", scaling="ordinal"), D, D[:4] + 0.01, ways),
        "mds interval": (mds(metric="precomputed", scaling="interval"), D, D[:4] + 0.01, ways),
        "umap combined": (Combined(umap(), umap(metric="manhattan")), X, new, None),
        "series": (Series(AlignedFinslerUMAP(umap())), X, new, {}),
        "opentsne": (
            OpenFinslerTSNE(n_iter=10, early_exaggeration_iter=10, perplexity=6, random_state=0),
            X, new, few,
        ),
        "mds pivots": (mds(metric="precomputed"), digraph(), edges, {"incoming": edges}),
    }  # fmt: skip


def result(path, new, keywords) -> tuple:
    """What a model gives: places of new rows, and those of the training rows."""
    from finsler_ext import load

    model = load(path)
    places = getattr(model, "embeddings_", None) or [getattr(model, "embedding_", np.empty(0))]
    if isinstance(model, np.ndarray):
        places = [model]
    places = np.concatenate([np.array(part) for part in places])  # openTSNE's transform moves them
    if keywords is None:
        return np.empty(0), places
    placed = model.transform(new, **keywords)
    placed = placed.toarray() if scipy.sparse.issparse(placed) else np.asarray(placed)
    return placed, places


# ------------------------------------------------------------------ mutations


def mutations(path) -> Iterator[Mutation]:
    """All mutations of a file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])
    for name in manifest["arrays"]:
        array = np.load(io.BytesIO(parts[name]))
        for what, hostile, changed in changed_arrays(array):
            where = f"{name} {array.dtype} {array.shape}"
            yield Mutation(where, what, hostile, rewritten(parts, {name: changed}))
    for trail, value in values(manifest["model"]):
        for what, hostile, changed in changed_values(value, trail[-1]):
            other = json.loads(parts["manifest.json"])
            place: Any = other["model"]
            for key in trail[:-1]:
                place = place[key]
            if trail[-1] == "slope" and what == "-1":
                hostile = not place["reason"]
            place[trail[-1]] = changed
            where = ".".join(str(key) for key in trail if key not in ("state", "items"))
            yield Mutation(where, what, hostile, rewritten(parts, {}, other))


def changed_arrays(a: np.ndarray) -> Iterator[tuple[str, bool, np.ndarray]]:
    yield "no rows", True, a[:0]
    yield "a row fewer", True, a[:-1]
    yield "half the rows", True, a[: len(a) // 2]
    yield "a row more", True, np.concatenate([a, a[-1:]])
    yield "one more dimension", True, a[None]
    if a.ndim == 2:
        yield "a column fewer", True, a[:, :-1]
        yield "flat", True, a.ravel()
        if a.shape[0] != a.shape[1]:
            yield "transposed", True, a.T
    for dtype in ("M8[D]", "c16", "U3", "?", "u8", "f2"):
        if a.dtype != np.dtype(dtype):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield (
                    f"as {dtype}",
                    True,
                    np.zeros(a.shape, dtype) if dtype[0] in "MU" else a.astype(dtype),
                )
    if a.size == 0:
        return
    middle = a.size // 2
    if a.dtype.kind in "iu":
        for value in (-5, 10**8, np.iinfo(a.dtype).max):
            if a.dtype.kind == "i" or value >= 0:
                yield f"{value} in it", True, changed_at(a, middle, value)
        yield "rolled", False, np.roll(a, 1)
    elif a.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf):
            yield f"{value} in it", True, changed_at(a, middle, value)
        yield "other values", False, (a * 1.25).astype(a.dtype)
        yield "one other value", False, changed_at(a, middle, a.flat[middle] + 1)


def changed_at(a, place, value):
    changed = a.copy()
    changed.flat[place] = value
    return changed


def values(node, trail=()) -> Iterator[tuple[tuple, Any]]:
    """Where the numbers, flags and words of a manifest are."""
    if isinstance(node, dict):
        if node.get("is") == "float":
            yield trail, float("nan")
            return
        for key, value in node.items():
            yield from values(value, (*trail, key))
    elif isinstance(node, list):
        for key, value in enumerate(node):
            yield from values(value, (*trail, key))
    elif node is not None:
        yield trail, node


def changed_values(value, key) -> Iterator[tuple[str, bool, Any]]:
    if isinstance(value, bool):
        yield "turned", False, not value
        yield "a number", True, int(value) + 2
        return
    if isinstance(value, str):
        yield "x", key not in FREE_TEXT, "x"
        yield "nothing", False, None
        return
    for name, wrong in (("nan", NAN), ("inf", INF), ("text", "x"), ("list", [])):
        yield name, True, wrong
    yield "-1", True, -1
    yield "True", True, True
    yield "None", False, None
    yield "huge", False, 10**9 if isinstance(value, int) else 1e30
    if isinstance(value, int):
        yield "one more", False, value + 1
        yield "a float", False, value + 0.5
    elif value == value:
        yield "other value", False, value * 1.25


def rewritten(parts: dict, changed: dict, manifest: dict | None = None) -> bytes:
    """The file with other arrays or another manifest, and the checksums that belong to it."""
    parts = dict(parts)
    manifest = json.loads(parts["manifest.json"]) if manifest is None else manifest
    for name, array in changed.items():
        stored = io.BytesIO()
        np.save(stored, array, allow_pickle=False)
        parts[name] = stored.getvalue()
        manifest["arrays"][name] = hashlib.sha256(parts[name]).hexdigest()
    parts["manifest.json"] = json.dumps(manifest).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return made.getvalue()


# ------------------------------------------------------------------ reading them


@contextmanager
def few_pairs(wanted: bool):
    """Graphs of more than ten nodes are embedded by pivots."""
    from finsler_ext.mds import distances, estimator, pivots

    with ExitStack() as stack:
        for module in (distances, estimator, pivots):
            if wanted and hasattr(module, "ALL_PAIRS"):
                stack.enter_context(patch.object(module, "ALL_PAIRS", 10))
        yield


def save_kind(name: str, folder: Path) -> Path:
    from finsler_ext.io import save

    path = folder / f"{name.replace(' ', '_')}.finsler"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data, _, _ = kinds()[name]
        with few_pairs(name == "mds pivots"):
            save(model.fit(data), path)
    return path


def outcome(path, new, keywords, expected) -> str:
    try:
        found = result(path, new, keywords)
    except ValueError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:90]
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True))
    return "equal" if same else "differs"


def work(name: str, path: str, first: int, stride: int) -> None:
    """Read the mutations of a file from one on; every outcome is a line."""
    warnings.simplefilter("ignore")
    _, _, new, keywords = kinds()[name]
    expected = result(path, new, keywords)
    with tempfile.NamedTemporaryFile(suffix=".finsler") as file:
        for number, mutation in enumerate(mutations(path)):
            if number < first or number % stride:
                continue
            print(f"{number} begun", flush=True)
            Path(file.name).write_bytes(mutation.content)
            signal.alarm(PATIENCE)
            with redirect_stdout(io.StringIO()):  # verbose may be turned on
                found = outcome(file.name, new, keywords, expected)
            signal.alarm(0)
            said = (mutation.where, mutation.what, mutation.hostile, found)
            print(f"{number} {json.dumps(said)}", flush=True)


def outcomes(name: str, path: Path, stride: int = 1) -> list[tuple]:
    """(where, what, hostile, outcome) of every mutation; a process that died is a "crash"."""
    found, first = [], 0
    while True:
        command = [sys.executable, "-m", "tests.io.file_mutations", name, path, first, stride]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
        found += [tuple(json.loads(rest)) for _, rest in lines if rest != "begun"]
        if done.returncode == 0:
            return found
        if not lines or lines[-1][1] != "begun":
            raise RuntimeError(done.stderr)
        first = int(lines[-1][0]) + 1
        found.append((f"mutation {first - 1}", "", True, f"crash ({done.returncode})"))


def main(stride: int = 1, *chosen: str) -> None:
    counts: Counter = Counter()
    for name in chosen or kinds():
        with tempfile.TemporaryDirectory() as folder:
            found = outcomes(name, save_kind(name, Path(folder)), stride)
        here: Counter = Counter()
        for where, what, hostile, how in found:
            kind = how if how in ("refused", "equal", "differs") else how.split(":")[0]
            here["hostile" if hostile else "plausible", kind] += 1
            if how not in ("refused", "equal") and (hostile or how != "differs"):
                print(f"  {name}: {where}, {what}: {how}")
        counts += here
        print(f"{name}: {len(found)} mutations, {dict(here)}", flush=True)
    print(f"{sum(counts.values())} mutations")
    for (kind, how), count in sorted(counts.items()):
        print(f"{kind:10s} {how:20s} {count}")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(*map(int, sys.argv[1:2]), *sys.argv[2:])
