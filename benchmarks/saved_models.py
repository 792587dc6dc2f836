"""Do saved models place new points alike under other versions of Python and its packages?

    python -m benchmarks.saved_models --python OTHER/bin/python [MORE ...] [--write-with PYTHON]

Models are fitted and saved by one interpreter (this one, unless --write-with names another), loaded
by all others, and asked for the same new points. Printed is the largest distance between the places
of a point, divided by the spread of the layout (root mean square distance from its centre).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

# A share of the layout's spread.
TOLERANCE = 1e-4
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pynndescent", "umap-learn", "openTSNE")
# Rows that models are fitted to, and rows that are new; more than umap-learn compares pair by pair.
N_LARGE, N_NEW = 6000, 500
ROOT = Path(__file__).parents[1]


def cases():
    """Models, the data they are fitted to, and new rows, by name."""
    from sklearn.datasets import load_digits

    from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

    X = load_digits().data
    old, new = X[:1500], X[1500:]
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, 20))
    large = centres[rng.integers(10, size=N_LARGE + N_NEW)]
    large = (large + rng.normal(size=large.shape)).astype(np.float32)
    points, height = rng.normal(size=(300, 2)), rng.normal(size=300)
    D = np.linalg.norm(points[:, None] - points, axis=2) * np.exp(0.2 * (height - height[:, None]))
    there, back = D[250:, :250], D[:250, 250:].T
    few = {"random_state": 0, "n_epochs": 100}
    yield "umap", FinslerUMAP(random_state=0), old, {"X": new}
    yield "umap, cosine", FinslerUMAP(metric="cosine", **few), old, {"X": new}
    yield "umap, two columns", FinslerUMAP(n_components=2, **few), old, {"X": new}
    yield "umap, geodesic", FinslerUMAP(geodesic_neighbors=40, **few), old, {"X": new}
    yield f"umap, {N_LARGE} rows", FinslerUMAP(**few), large[:N_LARGE], {"X": large[N_LARGE:]}
    directed = {"X": there, "incoming": back}
    yield "umap, directed", FinslerUMAP(metric="precomputed", **few), D[:250, :250], directed
    yield "tsne", FinslerTSNE(random_state=0, n_iter=200), old, {"X": new}
    yield (
        "tsne, directed",
        FinslerTSNE(metric="precomputed", random_state=0),
        D[:250, :250],
        (directed),
    )
    yield "mds", FinslerMDS(random_state=0, max_iter=50), old[:500], {"X": new}
    yield "mds, directed", FinslerMDS(metric="precomputed"), D[:250, :250], directed


def write(folder: Path) -> None:
    names = []
    for number, (name, model, data, new) in enumerate(cases()):
        model.fit(data)
        model.save(folder / f"{number}.finsler")
        np.savez(folder / f"{number}_new.npz", **new)
        np.save(folder / f"{number}_spread.npy", spread(np.asarray(model.embedding_)))
        names.append(name)
    (folder / "names.json").write_text(json.dumps(names))
    read(folder, folder / "first")


def read(folder: Path, places: Path) -> None:
    from finsler_ext import load

    places.mkdir()
    for number in range(len(names_of(folder))):
        with np.load(folder / f"{number}_new.npz") as new:
            placed = load(folder / f"{number}.finsler").transform(**new)
        np.save(places / f"{number}.npy", placed)
    found = {"Python": platform.python_version(), **{p: version(p) for p in PACKAGES}}
    (places / "versions.json").write_text(json.dumps(found))


def names_of(folder: Path) -> list[str]:
    return json.loads((folder / "names.json").read_text())


def spread(Y: np.ndarray) -> float:
    Y = Y[np.isfinite(Y).all(axis=1)]
    return float(np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()))


def compare(folder: Path, places: Path) -> list[tuple[str, float, int]]:
    """Name, largest distance as a share of the spread, and points that are further apart."""
    rows = []
    for number, name in enumerate(names_of(folder)):
        ours, theirs = (np.load(f / f"{number}.npy") for f in (folder / "first", places))
        apart = np.linalg.norm(ours - theirs, axis=1) / np.load(folder / f"{number}_spread.npy")
        rows.append((name, float(apart.max()), int((apart > TOLERANCE).sum())))
    return rows


def run(python: str, *arguments) -> None:
    subprocess.run(
        [python, "-m", "benchmarks.saved_models", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=[], metavar="PYTHON")
    parser.add_argument("--write-with", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write or options.read:
        warnings.simplefilter("ignore")
        write(options.write) if options.write else read(*options.read)
        return 0
    within = True
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        run(options.write_with, "--write", folder)
        print("saved with", *describe(folder / "first"))
        for number, python in enumerate([options.write_with, *options.python]):
            places = folder / f"places{number}"
            run(python, "--read", folder, places)
            print("loaded with", *describe(places))
            for name, most, beyond in compare(folder, places):
                print(f"  {name:20} {most:.1e} of the spread, {beyond} points beyond {TOLERANCE:g}")
                within = within and most <= TOLERANCE
    return 0 if within else 1


def describe(places: Path) -> list[str]:
    found = json.loads((places / "versions.json").read_text())
    return [", ".join(f"{name} {number}" for name, number in found.items())]


if __name__ == "__main__":
    sys.exit(main())
