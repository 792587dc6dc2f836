"""``finsler-ext embed FILE``: read, embed, write, and say in one sentence what came out."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import scipy.sparse

from finsler_ext._files import encodable
from finsler_ext._progress import LAYOUT, stage
from finsler_ext.cli.directed import MOST_ROWS, Directed, read_directed
from finsler_ext.cli.interrupts import Interrupts
from finsler_ext.cli.output import (
    check_model,
    check_output,
    check_plot,
    label_column,
    write_output,
    write_plot,
)
from finsler_ext.cli.stages import CLEAR
from finsler_ext.cli.tables import UNEQUAL, Table, read_table
from finsler_ext.cli.usage import NAMES, UsageError, one_line, shown_path

__all__ = ["embed"]

DRIFT = 0.5
# A layout that is over sooner than this many seconds needs no progress bar.
PATIENCE = 0.5
BAR = "{desc}: {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
# Fewer points than this are embedded by majorisation before one looks at a bar.
MDS_PATIENCE = 1000
# t-SNE works out its error whenever it calls back; now and then is enough for a bar.
TSNE_STRIDE = 10


def embed(options, interrupts: Interrupts | None = None) -> int:
    interrupts = interrupts or Interrupts()
    source = Path(options.file)
    output = Path(f"{source.stem}_finsler.csv" if options.output is None else options.output)
    _check_combinations(options)
    stage(f"reading {shown_path(source)}")
    data = _read(source, options)
    if isinstance(data, Directed) and data.how:
        _note(f"read {shown_path(source)}: {data.how}")
    check_output(output, source)
    plots = [Path(plot) for plot in options.plot]
    for place, plot in enumerate(plots):
        check_plot(plot, len(data.rows), source, output, *plots[:place])
    if options.save is not None:
        check_model(Path(options.save), source, output, *plots)
    method = options.method or ("mds" if options.directed else "umap")
    stage(f"loading {NAMES[method]}")
    # imported this late because it takes seconds, and a wrong file name should not
    from finsler_ext.cli.verdict import columns_why, shown_share, verdict
    from finsler_ext.drift import check_drift_parameter

    if options.omega_norm is not None:
        check_drift_parameter(options.omega_norm)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            model = _fitted(method, data, options)
        except (UsageError, MemoryError, OSError, ModuleNotFoundError):
            raise
        except Exception as error:  # what a metric does with data it is not meant for
            given = options.metric and options.metric not in ("euclidean", "l2")
            if given:
                text = f"{one_line(error)} (with --metric {options.metric})"
                raise UsageError(text) from None
            raise
        seconds = time.perf_counter() - started
        interrupts.check()
        stage(f"writing {shown_path(output)}")
        write_output(output, model.embedding_, data.rows, data.label, options.label)
        interrupts.written.append(shown_path(output))
        title = encodable(f"{source.name}, {NAMES[method]}")
        _draw(model, data, options, title, plots, interrupts)
        if options.save is not None:
            _save(model, data, options)
            interrupts.written.append(shown_path(options.save))
    _tell(model, options, caught)
    fidelity = verdict(model.skew_fidelity_, options.directed)
    if options.directed:
        fidelity = f"{fidelity}{shown_share(model)}{columns_why(model)}"
    how = data.how if isinstance(data, Table) else ""
    print(
        (f"Read {shown_path(source)}: {how}. " if how else "")
        + f"Embedded {_size(data)} in {seconds:.1f} s with {NAMES[method]} at "
        f"omega_norm={model.omega_norm_:.3g}; written to {' and '.join(interrupts.written)}. "
        f"{fidelity}"
    )
    return 0


def _draw(model, data, options, title: str, plots: list[Path], interrupts: Interrupts) -> None:
    for plot in plots:
        stage(f"drawing {shown_path(plot)}")
        write_plot(plot, model, data.label, options.label, data.rows, title)
        interrupts.written.append(shown_path(plot))


def _tell(model, options, caught) -> None:
    """Notes about names, warnings, and the search for neighbours."""
    if options.label is not None and label_column(options.label) != options.label:
        note = f"the label {options.label!r} is column {label_column(options.label)!r}"
        _note(note)
    for text in dict.fromkeys(one_line(note.message) for note in caught if _ours(note)):
        _note(text)
    if getattr(model, "_knn_search_index", None) is not None:
        _note(one_line(_search_in_words(model)))


def _save(model, data: Table | Directed, options) -> None:
    """The model, and what `finsler-ext transform` must know of the file it was fitted to."""
    from finsler_ext.io import save

    about: dict = {}
    if isinstance(data, Table):
        about["columns"] = data.columns
        if options.standardize:
            about["centre"], about["spread"] = _units(data.X)
    save(model, options.save, about=about)


def _read(source: Path, options) -> Table | Directed:
    if not options.directed:
        return read_table(source, options)
    for name in ("header", "index"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is for rows of points; it has no meaning with --directed")
    try:
        return read_directed(source, options)
    except (TypeError, IndexError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{source} cannot be read as directed data: {type(error).__name__}: {error}"
        ) from None


def _check_combinations(options) -> None:
    """Options that have no meaning without others."""
    for name in ("source", "target", "weight", "weights"):
        if getattr(options, name) is not None and not options.directed:
            raise UsageError(f"--{name} is for directed data; use it with --directed")
    if options.components == 1 and options.plot:
        raise UsageError("--plot needs two columns or more; leave --components 1 out")


def _search_in_words(model) -> str:
    from finsler_ext.construct import DirectedNeighbors
    from finsler_ext.estimators._umap.graph import search_in_words

    found = DirectedNeighbors(model._knn_indices, model._knn_dists, model._knn_search_index)
    return search_in_words(model, model._raw_data, found)


def _note(text: str) -> None:
    clear = CLEAR if sys.stderr.isatty() else ""
    print(f"{clear}finsler-ext: note: {text}", file=sys.stderr)


def _ours(note) -> bool:
    from finsler_ext.drift import ChanceWarning

    # the verdict says it anyway
    return issubclass(note.category, UserWarning) and not issubclass(note.category, ChanceWarning)


def _size(data: Table | Directed) -> str:
    if isinstance(data, Table):
        return f"{len(data.rows)} rows of {data.source}"
    return f"{len(data.rows)} points with {data.n_known} directed distances"


def _fitted(method: str, data: Table | Directed, options):
    drift = options.omega_norm
    if drift is None:
        drift = "auto" if options.directed and method == "mds" else DRIFT
    settings = {"omega_norm": drift, "random_state": options.seed}
    settings["n_jobs"] = options.threads
    if options.components is not None:
        settings["n_components"] = options.components
    settings["metric"] = "precomputed" if options.directed else options.metric or "euclidean"
    bar = {"bar_format": BAR, "delay": PATIENCE, "leave": False, "disable": None}
    X = _directed_input(method, data) if isinstance(data, Directed) else _points(data, options)
    if method == "umap":
        from finsler_ext import FinslerUMAP

        return FinslerUMAP(tqdm_kwds={"desc": "embedding", **bar}, **settings).fit(X)
    if method == "tsne":
        from finsler_ext import FinslerTSNE

        model = FinslerTSNE(callbacks_every_iters=TSNE_STRIDE, **settings)
        with Progress(model.early_exaggeration_iter + model.n_iter, bar) as progress:
            return model.set_params(callbacks=[progress]).fit(X).set_params(callbacks=None)
    from finsler_ext import FinslerMDS

    stage(LAYOUT)
    n = len(data.rows)
    if n > MOST_ROWS:
        raise UsageError(
            f"{n} rows are too many for mds, which keeps all pairs (at most {MOST_ROWS}); "
            "use --method umap"
        )
    if options.directed:
        settings.setdefault("n_components", "auto")
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
    # pixels share a unit
    named = data.columns is not None and not all(name.isdigit() for name in data.columns)
    if named and spread[large] > UNEQUAL * spread[small]:
        _note(
            f"the spread of column {data.column(large)!r} is "
            f"{spread[large]:.3g}, that of {data.column(small)!r} {spread[small]:.3g}; if their "
            "units differ, use --standardize"
        )
    return X


def _units(X) -> tuple[np.ndarray, np.ndarray]:
    spread = X.std(axis=0)
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _directed_input(method: str, data: Directed):
    """The distances with the names of the points; for neighbours, along paths if few are known."""
    from finsler_ext.construct.readers import (
        DirectedData,
        complete_paths,
        mostly_known,
        read_matrix,
    )

    D = data.D
    if method != "mds":
        D = read_matrix(D)
        if not mostly_known(D):
            D = complete_paths(D)
            _note(
                "fewer than half of the pairs are known; neighbours are those along shortest paths"
            )
    return DirectedData(D, data.rows)


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
