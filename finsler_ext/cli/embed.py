"""``finsler-ext embed FILE``: read, embed, write, and say in one sentence what came out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import scipy.sparse

import finsler_ext
from finsler_ext._files import encodable
from finsler_ext._messages import LAYOUT, stage
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
    MODELS,
    PICTURES,
    check_file,
    check_output,
    check_package,
    check_plots,
    coordinate_names,
    label_column,
    output_path,
    read_places,
    save_figure,
    write_output,
    write_plot,
)
from finsler_ext.cli.tables import MOST_ROWS, Table, format_of, read_table

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
    source, output = Path(options.file), output_path(options)
    _check_combinations(options)
    stage(f"reading {shown(source)}")
    data, method = _read(source, options)
    places = [] if options.pin is None else [Path(options.pin)]
    check_output(output, source, *places)
    plots = check_plots(options.plot, len(data.rows), source, output)
    if options.save is not None:
        check_file(Path(options.save), "--save", MODELS, source, output, *plots)
    stage(f"loading {NAMES[method]}")
    settings = parameters(options)
    # imported this late because it takes seconds, and a wrong file name should not
    from finsler_ext.evidence.verdict import ChanceWarning

    started = time.perf_counter()
    with warnings_as_notes(without=(ChanceWarning,)):  # the verdict says it anyway
        try:
            model = _fitted(method, settings, data, options)
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
        if options.label is not None:
            column = label_column(options.label, coordinate_names(model.embedding_.shape[1]))
            if column != options.label:
                note(f"the label {options.label!r} is column {column!r}")
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


def _read(source: Path, options) -> tuple[Table, str]:
    """The data and the method for it."""
    if not options.directed:
        return read_table(source, options), options.method or "umap"
    format_of(source, options)  # complains before the package is loaded
    from finsler_ext.cli.directed import method_for, read_directed_file

    data = read_directed_file(source, options)
    note(f"read {shown(source)}: {data.X}")
    if options.method is not None:
        return data, options.method
    method, why = method_for(data.X)
    if why:
        note(f"{NAMES[method]}, because {why}; --method mds would embed shortest paths")
    return data, method


def parameters(options) -> dict:
    """Those of the estimator that the options give."""
    from finsler_ext.geometry import check_drift_parameter

    if options.omega_norm is not None:
        check_drift_parameter(options.omega_norm)
    given = {
        "omega_norm": options.omega_norm,
        "n_components": options.components,
        "metric": options.metric,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return {"random_state": options.seed, "n_jobs": options.threads, **given}


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


def _fitted(method: str, settings: dict, data: Table, options):
    if options.components == "auto" and method != "mds":
        raise UsageError(f"--components auto is for mds; {method} needs a number")
    X, pinned = data.X, None
    if options.directed:
        settings["metric"] = "precomputed"
    else:
        X = _points(data, options)
    if options.pin is not None:
        if method == "mds":
            raise UsageError("--pin is for umap and tsne; use --method umap")
        pinned = read_places(Path(options.pin), data.rows, options.components or COLUMNS)
    bar = {"bar_format": BAR, "delay": PATIENCE, "leave": False, "disable": None}
    estimator = getattr(finsler_ext, NAMES[method])
    if method == "umap":
        settings["tqdm_kwds"] = {"desc": "embedding", **bar}
        return estimator(**settings).fit(X, pinned=pinned)
    if method == "tsne":
        model = estimator(callbacks_every_iters=TSNE_STRIDE, **settings)
        with _tsne_bar(model.early_exaggeration_iter + model.n_iter, bar) as step:
            model.set_params(callbacks=[step]).fit(X, pinned=pinned)
        return model.set_params(callbacks=None)
    stage(LAYOUT)
    n = len(data.rows)
    if n > MOST_ROWS:
        raise UsageError(
            f"{n} rows are too many for mds, which keeps all pairs (at most {MOST_ROWS}); "
            "use --method umap"
        )
    settings["verbose"] = n > MDS_PATIENCE and sys.stderr.isatty()
    with redirect_stdout(StringIO()):  # the bar is on stderr; the rest is said in the end
        return estimator(**settings).fit(X)


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
    named = named and Path(options.file).suffix.lower() != ".h5ad"
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


@contextmanager
def _tsne_bar(total: int, bar: dict) -> Iterator[Callable]:
    """A bar for openTSNE's callbacks; starts anew when another drift is tried."""
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="embedding", **bar) as shown_bar:

        def step(iteration, error, embedding):
            if shown_bar.n + TSNE_STRIDE > total:
                shown_bar.reset()
            shown_bar.update(TSNE_STRIDE)

        yield step


def demo(options, interrupts: Interrupts) -> int:
    """scikit-learn's digits, drawn twice."""
    check_file(Path(options.output), "--output", PICTURES)
    check_package("matplotlib", "plot", f"the picture {options.output}")
    from sklearn.datasets import load_digits

    from finsler_ext.plot import plot_map

    X, digit = load_digits(return_X_y=True)
    started = time.perf_counter()
    settings = {"omega_norm": options.omega_norm, "random_state": options.seed}
    model = finsler_ext.FinslerUMAP(**settings).fit(X)
    seconds = time.perf_counter() - started
    interrupts.check()
    with save_figure(options.output, 2) as (left, right):
        plot_map(model, color=digit, label="digit", ax=left).set_title("")
        plot_map(model, ax=right)
        left.figure.suptitle(f"scikit-learn's digits, ω = {options.omega_norm:g}")
    interrupts.written.append(options.output)
    print(
        f"Embedded {len(X)} digits in {seconds:.1f} s at omega_norm={options.omega_norm:g}; "
        f"picture in {shown(options.output)}. {verdict(model)}"
    )
    return 0
