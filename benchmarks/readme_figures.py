"""The pictures of the README: ``python -m benchmarks.readme_figures --data-dir DIR``.

Writes docs/flights.png (median air minutes between 281 US airports, 1–4 January 2015, from the
on-time performance tables of the US Bureau of Transportation Statistics, public domain; needs
flights_us_2015jan.npz in the data folder), docs/digits.png, and docs/explore.png if there is a
Chromium to open the page in. Prints the figures that the README quotes; that of cells needs
sc_velocity_cellrank200.npz (dentate gyrus, from the tests of CellRank) and anndata.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.patheffects
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.datasets import load_digits

from finsler_ext import FinslerMDS, FinslerUMAP
from finsler_ext.plot import explore, plot_map, plot_profile

__all__ = ["main"]

DOCS = Path(__file__).parent.parent / "docs"
# airport, and where its name stands beside the dot, so that no two names overlap
NAMED = {"SEA": "above", "SFO": "below", "DEN": "above", "DFW": "below", "MSP": "above"}
NAMED |= {"ATL": "above", "MIA": "below", "BOS": "above"}
DPI = 100


def flights(path: Path, out: Path) -> None:
    """Airports placed by flight times alone; the height points against the jet stream."""
    with np.load(path) as stored:
        D, (latitude, longitude) = stored["D"].astype(float), stored["latlon"].T
        names = stored["names"]
    model = FinslerMDS(n_components=2, metric="precomputed", omega_norm="auto", random_state=0)
    model.fit(D)
    north, height = model.embedding_.T
    north = north * np.sign(pearsonr(north, latitude).statistic)
    longer = 2 * model.omega_norm_ * height  # than to leave, by the difference of both directions
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.2, 4.4), width_ratios=(0.78, 1), layout="constrained"
    )
    # the height on the horizontal axis, so that east is on the right
    dots = left.scatter(-height, north, c=longer, s=12, cmap="viridis", linewidths=0)
    figure.colorbar(dots, ax=left, label="height", shrink=0.9)
    for name, side in NAMED.items():
        (row,) = np.flatnonzero(names == name)
        left.annotate(
            name,
            (-height[row], north[row]),
            xytext=(0, 5 if side == "above" else -5),
            textcoords="offset points",
            va="bottom" if side == "above" else "top",
            ha="center",
            fontsize=9,
            fontweight="bold",
            path_effects=[matplotlib.patheffects.withStroke(linewidth=2.5, foreground="white")],
        )
    left.set_aspect("equal", adjustable="box")
    left.set_xticks([])
    left.set_yticks([])
    left.set_title("281 airports placed by flight minutes alone", fontsize="medium")
    low, top = left.get_ylim()
    left.set_ylim(low - 0.12 * (top - low), top + 0.05 * (top - low))
    left.annotate(
        f"with the wind: {model.omega_norm_:.0%} less time",
        (0.9, 0.05),
        xytext=(0.04, 0.05),
        xycoords="axes fraction",
        textcoords="axes fraction",
        va="center",
        arrowprops={"arrowstyle": "->", "lw": 1.4},
    )
    rank = spearmanr(height, longitude).statistic
    right.scatter(longitude, longer, c=longer, s=12, cmap="viridis", linewidths=0)
    right.set_xlabel("longitude (degrees east), which the fit was not told")
    right.set_ylabel("height: minutes longer to reach than to leave")
    right.set_title(
        f"the west takes longer to reach: rank correlation {rank:.2f}".replace("-", "−"),
        fontsize="medium",
    )
    figure.savefig(out, dpi=DPI)
    print(
        f"flights: omega_norm={model.omega_norm_:.3f}, Spearman(height, longitude) = {rank:.2f}, "
        f"{model.skew_fidelity_}"
    )


def cells(path: Path) -> None:
    """Height against latent time, of cells embedded by their velocities."""
    import anndata

    from finsler_ext.scanpy import velocity

    with np.load(path) as stored:
        adata = anndata.AnnData(stored["X"], uns={"velocity_graph": stored["velocity_graph"]})
        time = stored["latent_time"]
    velocity(adata)
    fall = spearmanr(adata.obs["finsler_velocity_height"], time).statistic
    print(f"velocity: Spearman(height, latent time) = {fall:.2f}")


def digits(out: Path) -> FinslerUMAP:
    """The map as always, and what the height adds."""
    X, digit = load_digits(return_X_y=True)
    model = FinslerUMAP(random_state=0).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    plot_map(model, color=digit, label="digit", ax=axes[0])
    plot_map(model, ax=axes[1])
    plot_profile(model, "local_scale", color=digit, ax=axes[2])
    axes[2].get_legend().remove()
    axes[2].set_xlabel("local scale: mean distance to the neighbours")
    axes[0].set_title("")  # the second says how far to trust the height
    axes[2].set_title("")
    figure.savefig(out, dpi=80)
    print(f"digits: {model.skew_fidelity_}")
    return model


def page(model, out: Path) -> None:
    """The page of `explore`, half way to its side view."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("explore: no Chromium, no screenshot")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        explore(model, path, labels={"digit": load_digits().target}, title="Digits")
        # the height by hand, because the window gets its size after the first drawing
        turned = "<style>body { height: 560px; }</style>"
        turned += "<script>set({turn: 28, tilt: 62, color: 1});</script></body>"
        whole, _, end = path.read_text(encoding="utf-8").rpartition("</body>")
        path.write_text(whole + turned + end, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
        options += ["--enable-unsafe-swiftshader"]
        options += [f"--user-data-dir={folder}/profile", "--window-size=1000,560"]
        subprocess.run(
            [browser, *options, f"--screenshot={out}", path.as_uri()],
            check=True,
            capture_output=True,
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=os.environ.get("FINSLER_DATA"))
    parser.add_argument("--output", type=Path, default=DOCS)
    options = parser.parse_args(argv)
    options.output.mkdir(exist_ok=True)
    path = Path(options.data_dir or ".") / "flights_us_2015jan.npz"
    if path.is_file():
        flights(path, options.output / "flights.png")
    else:
        print("flights: flights_us_2015jan.npz not found; give its folder with --data-dir")
    path = path.with_name("sc_velocity_cellrank200.npz")
    if path.is_file():
        cells(path)
    page(digits(options.output / "digits.png"), options.output / "explore.png")


if __name__ == "__main__":
    main()
