"""Writing the embedding and its picture; what cannot be written is said before the work."""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from finsler_ext.cli.usage import UsageError, needs

__all__ = ["check_output", "check_plot", "save_figure", "write_output", "write_plot"]

TABLES = ("csv", "parquet", "npy")
PICTURES = ("png", "pdf", "svg", "jpg", "jpeg")
PAGES = ("html", "htm")
# As in `finsler_ext.plot`, which takes too long to import for a look at the options.
MOST_DOTS, MOST_IN_A_PAGE = 100_000, 500_000


def _suffix(path: Path, option: str, allowed: tuple[str, ...]) -> str:
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in allowed:
        raise UsageError(f"{option} {path}: unknown ending; use one of {', '.join(allowed)}")
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{option} {path}: cannot be written")
    return suffix


def check_output(path: Path, source: Path) -> None:
    suffix = _suffix(path, "--output", TABLES)
    if path.exists() and path.samefile(source):
        raise UsageError(f"--output {path} is the file to read; choose another name")
    if suffix == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise needs("pyarrow", "parquet", f"--output {path}")


def coordinate_names(n_columns: int) -> list[str]:
    """Names of map columns and height: x, y and height, or as many as there are."""
    few = ["x", "y"][: n_columns - 1]
    return [*few, *(f"map{c}" for c in range(3, n_columns)), "height"]


def write_output(path: Path, embedding, rows, label, label_name) -> None:
    suffix = path.suffix.lower()
    embedding = np.asarray(embedding)
    if suffix == ".npy":
        np.save(path, embedding)
        return
    axes = coordinate_names(embedding.shape[1])
    names = ["row", *([] if label is None else [label_name]), *axes]
    columns = [rows, *([] if label is None else [label.tolist()]), *embedding.T.tolist()]
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, columns, strict=True))), path)
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))


def check_plot(path: Path, n: int) -> None:
    suffix = _suffix(path, "--plot", (*PICTURES, *PAGES))
    if suffix in PAGES:
        _check_package("plotly", "plot", f"the page {path}")
        if n > MOST_IN_A_PAGE:
            raise UsageError(
                f"--plot {path}: {n} points are too many for a page (at most {MOST_IN_A_PAGE}); "
                "draw a picture (png)"
            )
        return
    _check_package("matplotlib", "plot", f"the picture {path}")
    if n > MOST_DOTS:
        _check_package("datashader", "large", f"a picture of {n} points")


def _check_package(package: str, extra: str, what: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise needs(package, extra, what)


def write_plot(path: Path, model, label, label_name, rows, title: str) -> None:
    if path.suffix.lower().lstrip(".") in PAGES:
        from finsler_ext.plot import explore

        labels = None if label is None else {label_name: label}
        hover = {"name": np.array(rows, dtype=object)}
        hover = {} if rows == list(range(len(rows))) else hover
        explore(model, path, labels=labels, hover=hover, title=title)
        return
    from finsler_ext.plot import plot_map, plot_profile

    # Of two columns the height is one: the side view is the map.
    draw = plot_map if np.shape(model.embedding_)[1] > 2 else plot_profile
    with save_figure(path)(1 if label is None else 2) as axes:
        if label is not None:
            draw(model, color=label, label=label_name, ax=axes[0])
        draw(model, ax=axes[-1])
        axes[0].set_title(title)


def save_figure(path) -> Callable:
    """A context of side-by-side Axes whose figure is written to ``path`` in the end."""
    path = Path(path)
    _suffix(path, "--output", PICTURES)
    _check_package("matplotlib", "plot", f"the picture {path}")

    @contextmanager
    def figure_of(panels: int):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.7 * panels, 5.4), layout="constrained")
        FigureCanvasAgg(figure)  # needs no display, whatever the user's settings
        yield figure.subplots(1, panels, squeeze=False)[0]
        figure.savefig(path, dpi=110)

    return figure_of
