"""Writing the embedding and its picture; what cannot be written is said before the work."""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from finsler_ext._files import encodable, replaced
from finsler_ext.cli.messages import UsageError, needs
from finsler_ext.cli.tables import colors_of
from finsler_ext.cli.text import is_number, read_cells

TABLES = ("csv", "parquet", "npy")
LARGE_TABLES = ("parquet", "zarr", "npy")
MODELS = ("finsler",)
PICTURES = ("png", "pdf", "svg", "jpg", "jpeg")
PAGES = ("html", "htm")
# With these a spreadsheet begins a formula; a tab or return in front is skipped by some.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Inches of one panel, and dots per inch: two panels fill a slide, with letters that can be read.
PANEL, DPI = (6.0, 5.0), 200
# As in `finsler_ext.plot`, which takes too long to import for a look at the options.
MOST_DOTS, MOST_IN_A_PAGE = 100_000, 500_000


def output_path(options, ending: str = "csv") -> Path:
    """Where the table goes."""
    default = f"{Path(options.file).stem}_finsler.{ending}"
    return Path(default if options.output is None else options.output)


def check_file(path: Path, option: str, endings: tuple[str, ...], *others: Path) -> str:
    """The ending of a file that can be written and is none of the others, links included."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in endings:
        raise UsageError(f"{option} {path}: unknown ending; use one of {', '.join(endings)}")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}")
    real = Path(os.path.realpath(path))  # where a link leads to
    unwritable = real.exists() and not os.access(real, os.W_OK)
    is_folder = real.is_dir() and suffix != "zarr"
    if is_folder or unwritable or not real.parent.is_dir():
        raise UsageError(f"{option} {path}: cannot be written")
    if not os.access(real.parent, os.W_OK):
        raise UsageError(
            f"{option} {path}: nothing can be written to the folder {real.parent}, where the new "
            "file is made before it replaces the old one"
        )
    for other in others:
        same = path.exists() and other.exists() and path.samefile(other)
        if same or os.path.realpath(other) == str(real):
            raise UsageError(f"{option} {path} is the file {other}; choose another name")
    return suffix


def check_output(path: Path, *inputs: Path) -> None:
    if check_file(path, "--output", TABLES, *inputs) == "parquet":
        check_package("pyarrow", "parquet", f"--output {path}")


def check_plots(given: list[str], n: int, *others: Path) -> list[Path]:
    """Paths of pictures and pages of n points, which may be none of the other files."""
    plots = [Path(plot) for plot in given]
    for place, plot in enumerate(plots):
        suffix = check_file(plot, "--plot", (*PICTURES, *PAGES), *others, *plots[:place])
        if suffix in PICTURES:
            check_package("matplotlib", "plot", f"the picture {plot}")
            if n > MOST_DOTS:
                check_package("datashader", "large", f"a picture of {n} points")
            continue
        check_package("plotly", "plot", f"the page {plot}")
        if n > MOST_IN_A_PAGE:
            raise UsageError(
                f"--plot {plot}: {n} points are too many for a page (at most {MOST_IN_A_PAGE}); "
                "draw a picture (png)"
            )
    return plots


def check_package(package: str, extra: str, what: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise needs(package, extra, what)


def coordinate_names(n_columns: int) -> list[str]:
    """Names of map columns and height: x, y and height, or as many as there are."""
    few = ["x", "y"][: n_columns - 1]
    return [*few, *(f"map{c}" for c in range(3, n_columns)), "height"]


def write_output(path: Path, embedding, rows, label, label_name, potential=None) -> None:
    """The table, complete or not at all; see `label_column` for the name of the label.

    ``potential`` is one more column, but of npy files, which hold the embedding alone.
    """
    suffix = path.suffix.lower()
    embedding = np.asarray(embedding)
    with replaced(path) as file:
        if suffix == ".npy":
            np.save(file, embedding)
            return
        axes = coordinate_names(embedding.shape[1])
        if potential is not None:
            axes, embedding = [*axes, "potential"], np.column_stack([embedding, potential])
        names = ["row", *([] if label is None else [label_column(label_name, axes)]), *axes]
        columns = [_plain(rows), *([] if label is None else [_plain(label)])]
        if suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            columns += list(embedding.T)
            table = pyarrow.table(dict(zip(names, columns, strict=True)))
            pyarrow.parquet.write_table(table, file)
            return
        columns = [[_cell(value) for value in column] for column in columns]
        columns += embedding.T.tolist()
        with open(file, "w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text)
            writer.writerow([_cell(name) for name in names])
            writer.writerows(zip(*columns, strict=True))


def read_places(path: Path, rows, n_components: int) -> np.ndarray:
    """Places by rows, from a table as `write_output` writes it; nan for rows and cells without."""
    cells = read_cells(path)
    _, header = next(cells, (0, []))
    axes = coordinate_names(n_components)
    given = [name for name in axes if name in header]
    if "row" not in header or not given:
        raise UsageError(
            f"--pin {path}: it needs a column 'row' and some of {', '.join(axes)}; it has "
            f"{', '.join(header) or 'none'}"
        )
    number = {str(_cell(name)): i for i, name in enumerate(_plain(rows))}
    places = np.full((len(number), n_components), np.nan)
    for line, found in cells:
        row = found[header.index("row")]
        if row not in number:
            raise UsageError(f"--pin {path}: line {line}: the data has no row {row!r}")
        for name in given:
            cell = found[header.index(name)]
            if cell and not is_number(cell):
                raise UsageError(f"--pin {path}: line {line}: {name} is {cell!r}, not a number")
            if cell:
                places[number[row], axes.index(name)] = float(cell)
    return places


def label_column(name: str, axes: list[str]) -> str:
    """The label's own name, unless a column of the embedding has it."""
    return f"label_{name}" if name in ("row", "potential", *axes) else encodable(name)


def _plain(values) -> list:
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return [encodable(value) if isinstance(value, str) else value for value in values]


def _cell(value):
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    if isinstance(value, str) and value.startswith(FORMULA) and not is_number(value):
        return f"'{value}"
    return value


def write_plot(path: Path, model, label, label_name, rows, title: str) -> None:
    """Draw a fitted model, or positions."""
    if path.suffix.lower().lstrip(".") in PAGES:
        from finsler_ext.plot import explore

        labels = None if label is None else {label_name: colors_of(label)}
        hover = {"name": np.array(rows, dtype=object)}
        hover = {} if rows == list(range(len(rows))) else hover
        explore(model, path, labels=labels, hover=hover, title=title)
        return
    from finsler_ext.plot import plot_map, plot_profile

    # Of two columns the height is one: the side view is the map.
    positions = getattr(model, "embedding_", model)
    draw = plot_map if np.shape(positions)[1] > 2 else plot_profile
    with save_figure(path, 1 if label is None else 2) as axes:
        if label is not None:
            draw(model, color=colors_of(label), label=label_name, ax=axes[0])
            axes[0].set_title("")  # the picture beside it says how far to trust the height
        draw(model, ax=axes[-1])
        axes[0].figure.suptitle(title)


@contextmanager
def save_figure(path, panels: int) -> Iterator[np.ndarray]:
    """Axes side by side, whose figure is written to ``path`` in the end."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL[0] * panels, PANEL[1]), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, whatever the user's settings
    yield figure.subplots(1, panels, squeeze=False)[0]
    with replaced(path) as file:
        figure.savefig(file, dpi=DPI)
