"""``finsler-ext embed FILE``: read, embed, write, and say in one sentence what came out."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import scipy.sparse

from finsler_ext._files import encodable
from finsler_ext._messages import LAYOUT, stage
from finsler_ext.cli.directed import MOST_ROWS, method_for, read_directed_file
from finsler_ext.cli.messages import (
    NAMES,
    Interrupts,
    UsageError,
    joined,
    note,
    one_line,
    shown,
    verdict,
    warnings_as_notes,
)
from finsler_ext.cli.output import (
    check_model,
    check_output,
    check_plots,
    coordinate_names,
    label_column,
    read_places,
    save_figure,
    write_output,
    write_plot,
)
from finsler_ext.cli.tables import Table, format_of, read_table

# Of a fit without --components, which --pin must have as well.
COLUMNS = 3
# A layout that is over sooner than this many seconds needs no progress bar.
PATIENCE = 0.5
BAR = "{desc}: {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
# Fewer points than this are embedded by majorisation before one looks at a bar.
MDS_PATIENCE = 1000
# Columns whose spreads differ more than this are probably in different units.
UNEQUAL = 100.0
# What columns that name the rows are called.
INDEX_NAMES = ("id", "ids", "index", "row", "rows", "nr", "no", "number", "unnamed: 0")
# t-SNE works out its error whenever it calls back; now and then is enough for a bar.
TSNE_STRIDE = 10


def embed(options, interrupts: Interrupts) -> int:
    source = Path(options.file)
    output = Path(f"{source.stem}_finsler.csv" if options.output is None else options.output)
    _check_combinations(options)
    stage(f"reading {shown(source)}")
    read = read_directed_file if options.directed else read_table
    data = read(source, options)
    if options.directed:
        note(f"read {shown(source)}: {data.X}")
    check_output(output, source, *([] if options.pin is None else [Path(options.pin)]))
    plots = check_plots(options.plot, len(data.rows), source, output)
    if options.save is not None:
        check_model(Path(options.save), source, output, *plots)
    method = options.method or (_proposed_method(data.X) if options.directed else "umap")
    stage(f"loading {NAMES[method]}")
    # imported this late because it takes seconds, and a wrong file name should not
    from finsler_ext.evidence.verdict import ChanceWarning
    from finsler_ext.geometry import check_drift_parameter

    if options.omega_norm is not None:
        check_drift_parameter(options.omega_norm)
    started = time.perf_counter()
    with warnings_as_notes(without=(ChanceWarning,)):  # the verdict says it anyway
        try:
            model = _fitted(method, data, options)
        except (UsageError, MemoryError, OSError, ModuleNotFoundError):
            raise
        except Exception as error:  # what a metric does with data it is not meant for
            if options.metric in (None, "euclidean", "l2"):
                raise
            raise UsageError(f"{one_line(error)} (with --metric {options.metric})") from None
        seconds = time.perf_counter() - started
        interrupts.check()
        stage(f"writing {shown(output)}")
        potential = model.potential_ if options.directed else None
        write_output(output, model.embedding_, data.rows, data.label, options.label, potential)
        interrupts.written.append(shown(output))
        title = encodable(f"{source.name}, {NAMES[method]}")
        for plot in plots:
            stage(f"drawing {shown(plot)}")
            write_plot(plot, model, data.label, options.label, data.rows, title)
            interrupts.written.append(shown(plot))
        if options.save is not None:
            _save(model, data, options)
            interrupts.written.append(shown(options.save))
        _note_label(model, options.label)
    if getattr(model, "_knn_search_index", None) is not None:
        note(_search_in_words(model))
    size = data.source if options.directed else f"{len(data.rows)} rows of {data.source}"
    choice = getattr(model, "column_choice_", None) if options.directed else None
    print(
        (f"Read {shown(source)}: {shown(data.how)}. " if data.how else "")
        + f"Embedded {size} in {seconds:.1f} s with {NAMES[method]} at "
        f"omega_norm={model.omega_norm_:.3g}; written to {joined(interrupts.written)}. "
        f"{verdict(model)}" + (f" Columns: {choice.reason}." if choice else "")
    )
    return 0


def _proposed_method(directed) -> str:
    method, why = method_for(directed)
    if why:
        note(f"{NAMES[method]}, because {why}; --method mds would embed shortest paths")
    return method


def _note_label(model, label: str | None) -> None:
    if label is not None:
        written = label_column(label, coordinate_names(model.embedding_.shape[1]))
        if written != label:
            note(f"the label {label!r} is column {written!r}")


def _save(model, data: Table, options) -> None:
    """The model, and what `finsler-ext transform` must know of the file it was fitted to."""
    from finsler_ext.io import save

    about: dict = {}
    if not options.directed:
        about["columns"] = data.columns
        if options.standardize:
            about["centre"], about["spread"] = _units(data.X)
    save(model, options.save, about=about)


def _check_combinations(options) -> None:
    """Options that have no meaning without others."""
    for name in ("source", "target", "weight", "values"):
        if getattr(options, name) is not None and not options.directed:
            raise UsageError(f"--{name} is for directed data; use it with --directed")
    if options.components == 1 and options.plot:
        raise UsageError("--plot needs two columns or more; leave --components 1 out")


def _search_in_words(model) -> str:
    from finsler_ext.neighbors.search import DirectedNeighbors
    from finsler_ext.umap.graph import search_in_words

    found = DirectedNeighbors(model._knn_indices, model._knn_dists, model._knn_search_index)
    return search_in_words(model, model._raw_data, found)


def _fitted(method: str, data: Table, options):
    settings = {"random_state": options.seed, "n_jobs": options.threads}
    given = {"omega_norm": options.omega_norm, "n_components": options.components}
    settings |= {name: value for name, value in given.items() if value is not None}
    if options.components == "auto" and method != "mds":
        raise UsageError(f"--components auto is for mds; {method} needs a number")
    settings["metric"] = "precomputed" if options.directed else options.metric or "euclidean"
    bar = {"bar_format": BAR, "delay": PATIENCE, "leave": False, "disable": None}
    X = data.X if options.directed else _points(data, options)
    pinned = None
    if options.pin is not None:
        if method == "mds":
            raise UsageError("--pin is for umap and tsne; use --method umap")
        pinned = read_places(Path(options.pin), data.rows, options.components or COLUMNS)
    if method == "umap":
        from finsler_ext import FinslerUMAP

        model = FinslerUMAP(tqdm_kwds={"desc": "embedding", **bar}, **settings)
        return model.fit(X, pinned=pinned)
    if method == "tsne":
        from finsler_ext import FinslerTSNE

        model = FinslerTSNE(callbacks_every_iters=TSNE_STRIDE, **settings)
        with Progress(model.early_exaggeration_iter + model.n_iter, bar) as progress:
            model.set_params(callbacks=[progress]).fit(X, pinned=pinned)
        return model.set_params(callbacks=None)
    from finsler_ext import FinslerMDS

    stage(LAYOUT)
    n = len(data.rows)
    if n > MOST_ROWS:
        raise UsageError(
            f"{n} rows are too many for mds, which keeps all pairs (at most {MOST_ROWS}); "
            "use --method umap"
        )
    settings["verbose"] = n > MDS_PATIENCE and sys.stderr.isatty()
    with redirect_stdout(StringIO()):  # the bar is on stderr; the rest is said in the end
        return FinslerMDS(**settings).fit(X)


def _points(data: Table, options):
    X = data.X
    if scipy.sparse.issparse(X):
        if options.standardize:
            raise UsageError("--standardize is for dense data")
        return X
    spread = X.std(axis=0)
    if options.standardize:
        centre, unit = _units(X)
        return (X - centre) / unit
    if not (spread > 0).any():
        raise UsageError(f"{options.file}: all rows are equal, there is nothing to embed")
    varied = np.flatnonzero(spread > 0)
    small, large = varied[spread[varied].argmin()], varied[spread[varied].argmax()]
    # pixels share a unit, and so do genes
    named = data.columns is not None and not all(name.isdigit() for name in data.columns)
    named = named and format_of(Path(options.file)) != "h5ad"
    for column in range(X.shape[1]) if named else ():
        if _names_rows(data.column(column), X[:, column]):
            note(
                f"column {data.column(column)!r} is embedded, and looks as if it named the rows; "
                f"then use --index {data.column(column)!r}, or leave it out with --drop"
            )
    if named and spread[large] > UNEQUAL * spread[small]:
        note(
            f"the spread of column {data.column(large)!r} is "
            f"{spread[large]:.3g}, that of {data.column(small)!r} {spread[small]:.3g}; if their "
            "units differ, use --standardize"
        )
    return X


def _names_rows(name: str, values: np.ndarray) -> bool:
    """Whether a column counts the rows, or is called like their names and has each number once."""
    if (np.diff(values) == 1).all():
        return True
    called = name.strip().lower() in INDEX_NAMES or name.lower().endswith(("_id", " id"))
    return called and (values == np.round(values)).all() and len(np.unique(values)) == len(values)


def _units(X) -> tuple[np.ndarray, np.ndarray]:
    spread = X.std(axis=0)
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


class Progress:
    """A bar for openTSNE's callbacks; starts anew when another drift is tried."""

    def __init__(self, total: int, bar: dict):
        self.total, self.settings = total, bar
        self.bar = None

    def __enter__(self):
        from tqdm.auto import tqdm

        self.bar = tqdm(total=self.total, desc="embedding", **self.settings)
        return self

    def __exit__(self, *error):
        self.bar.close()

    def __call__(self, iteration, error, embedding):
        if self.bar.n + TSNE_STRIDE > self.total:
            self.bar.reset()
        self.bar.update(TSNE_STRIDE)


def demo(options, interrupts: Interrupts) -> int:
    """scikit-learn's digits, drawn twice."""
    picture = save_figure(options.output)  # complains now rather than after the work
    from sklearn.datasets import load_digits

    from finsler_ext import FinslerUMAP
    from finsler_ext.plot import plot_map

    X, digit = load_digits(return_X_y=True)
    started = time.perf_counter()
    model = FinslerUMAP(omega_norm=options.omega_norm, random_state=options.seed).fit(X)
    seconds = time.perf_counter() - started
    interrupts.check()
    with picture(2) as (left, right):
        plot_map(model, color=digit, label="digit", ax=left).set_title("")
        plot_map(model, ax=right)
        left.figure.suptitle(f"scikit-learn's digits, ω = {options.omega_norm:g}")
    interrupts.written.append(options.output)
    print(
        f"Embedded {len(X)} digits in {seconds:.1f} s at omega_norm={options.omega_norm:g}; "
        f"picture in {shown(options.output)}. {verdict(model)}"
    )
    return 0
