"""``finsler-ext imports PACKAGE``: the modules of a package as a landscape.

What imports others and is imported by few lies high; imports that lead upwards are red.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from finsler_ext._messages import stage
from finsler_ext.cli.messages import (
    Interrupts,
    UsageError,
    joined,
    listed,
    needs,
    note,
    shown,
    verdict,
    warnings_as_notes,
)
from finsler_ext.cli.output import PAGES, check_output, check_plots, save_figure, write_output

# Modules that an embedding needs.
FEWEST = 4
# Upward imports that are printed and drawn in full colour, and cycles that are printed.
PRINTED = 20
# Of these, both ends are named in a picture.
NAMED = 10
# Up to this many modules all names are tried in a picture, and of more the best connected.
MOST_NAMES, LANDMARKS = 60, 40
# Inches of the picture: a slide.
SIZE = (12.0, 7.0)
UP, DOWN = "#d62728", "0.6"
# Where a name may stand: points across and up from its module, beside it or at the end of a line.
SIDES = ((5, 1), (-5, 1), (5, -1), (-5, -1), (16, 14), (-16, 14), (16, -14), (-16, -14))
MEANING = "height: a module lies above what it imports"
RED = "a red line is an import that leads up: the lower module imports the upper one"


class Imports(NamedTuple):
    """Names of modules, and 1 where module i imports module j."""

    names: list[str]
    graph: scipy.sparse.csr_array

    def cycles(self) -> list[list[str]]:
        """Modules that import each other in a circle (strongly connected), the most first."""
        return [[self.names[i] for i in part] for part in _parts(self.graph, "strong", least=2)]


class Landscape(NamedTuple):
    """The largest connected part of the modules, and a FinslerUMAP fitted to their imports."""

    imports: Imports
    model: Any
    left_out: list[str]

    @property
    def height(self) -> np.ndarray:
        return self.model.embedding_[:, -1]

    def in_cycles(self, pairs) -> np.ndarray:
        """Which imports are part of a cycle: no order of the modules has them all lead down."""
        part = connected_components(self.imports.graph, connection="strong")[1]
        return part[pairs[:, 0]] == part[pairs[:, 1]]

    def upward(self) -> np.ndarray:
        """Pairs (importing, imported) whose import leads up, the longest way first."""
        source, target = self.imports.graph.nonzero()
        rise = self.height[target] - self.height[source]
        order = np.argsort(-rise, kind="stable")
        return np.column_stack([source, target])[order[rise[order] > 0]]

    def packages(self) -> np.ndarray:
        """The part of the package that each module is in."""
        return np.array([_inner(name).split(".")[0] for name in self.imports.names], dtype=object)


def read_imports(package: str, without: tuple[str, ...] | list[str] = ()) -> Imports:
    """The import graph of an installed package, which is read and not run.

    ``without`` are words: a module that has one of them in its dotted name is left out.
    """
    try:
        import grimp
    except ImportError:
        raise needs("grimp", "imports", "finsler-ext imports") from None
    if "." in package:
        raise UsageError(f"{package}: give the whole package, {package.split('.')[0]}")
    try:
        spec = importlib.util.find_spec(package)
    except (ValueError, ImportError):
        spec = None
    if spec is None:
        raise UsageError(
            f"there is no package {package!r} here; install it, and give the name that is imported"
        )
    if spec.submodule_search_locations is None:
        raise UsageError(f"{package} is a single module; there is nothing to import within it")
    try:
        found = grimp.build_graph(package, cache_dir=None)
    except Exception as error:  # a file that is no Python, a package without __init__.py
        raise UsageError(f"the imports of {package} cannot be read: {error}") from None
    names = [n for n in sorted(found.modules) if not set(without) & set(n.split("."))]
    number = {name: i for i, name in enumerate(names)}
    pairs = [
        (number[name], number[other])
        for name in names
        for other in sorted(found.find_modules_directly_imported_by(name))
        if other in number and other != name  # pandas has a module that imports itself
    ]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    shape = (len(names), len(names))
    return Imports(names, scipy.sparse.csr_array((np.ones(len(pairs)), (source, target)), shape))


def fit_imports(imports: Imports, seed: int = 0, n_jobs: int = -1) -> Landscape:
    """Map and height of the largest part of the graph that hangs together.

    Heights of modules without a chain of imports between them do not compare.
    """
    parts = _parts(imports.graph, "weak", least=FEWEST)
    if not parts:
        raise UsageError(
            f"{len(imports.names)} modules with {imports.graph.nnz} imports between them: there "
            f"is nothing to draw; at least {FEWEST} modules must be connected"
        )
    from finsler_ext import FinslerUMAP, read_directed

    rows = parts[0]
    names = [imports.names[i] for i in rows]
    inner = Imports(names, scipy.sparse.csr_array(imports.graph[rows][:, rows]))
    model = FinslerUMAP(metric="precomputed", random_state=seed, n_jobs=n_jobs)
    model.fit(read_directed(inner.graph))
    apart = np.setdiff1d(np.arange(len(imports.names)), rows)
    return Landscape(inner, model, [imports.names[i] for i in apart])


def _parts(graph, connection: str, least: int) -> list[np.ndarray]:
    _, part = connected_components(graph, connection=connection)
    size = np.bincount(part, minlength=1) if len(part) else np.zeros(0, dtype=int)
    order = np.argsort(-size, kind="stable")
    return [np.flatnonzero(part == k) for k in order if size[k] >= least]


def _inner(name: str) -> str:
    """The name without that of the package."""
    return name.partition(".")[2] or name


# ------------------------------------------------------------------ pictures


def draw_landscape(landscape: Landscape, ax):
    """Side view: the long axis of the map across, the height up."""
    from matplotlib.collections import LineCollection

    from finsler_ext.plot.dots import marker_size

    places = side_view(landscape)
    graph, upward = landscape.imports.graph, landscape.upward()
    n = len(places)
    faint = float(np.clip(150.0 / max(graph.nnz, 1), 0.03, 0.3))
    every = places[np.column_stack(graph.nonzero())]
    ax.add_collection(LineCollection(every, colors=DOWN, linewidths=0.5, alpha=faint, zorder=1))
    # those that rise most stand out, because short rises mean little
    few = np.arange(len(upward)) < PRINTED
    pale = float(np.clip(40.0 / max(len(upward), 1), 0.06, 0.6))
    stroke: Any = {"linewidths": np.where(few, 1.3, 0.8), "alpha": np.where(few, 0.9, pale)}
    ax.add_collection(LineCollection(places[upward], colors=UP, zorder=2, **stroke))
    look = {"c": landscape.height, "cmap": "viridis", "linewidths": 0, "zorder": 3}
    ax.scatter(*places.T, s=2 * marker_size(n), **look)
    ax.autoscale_view()
    ax.margins(0.06)
    # the ends of what rises most, the highest and the lowest modules, then the best connected
    ends = np.unique(upward[:PRINTED])
    order = np.argsort(-landscape.height, kind="stable")
    degree = np.asarray(graph.sum(axis=0) + graph.sum(axis=1)).ravel()
    rest = np.argsort(-degree, kind="stable")
    first = np.concatenate([upward[:NAMED].ravel(), order[:3], order[-3:], rest]).tolist()
    wanted = list(dict.fromkeys(first))[: n if n <= MOST_NAMES else LANDMARKS]
    _write_names(ax, places, landscape.imports.names, wanted, clear=places[ends])
    share = len(upward) / graph.nnz
    title = f"{n} modules, {graph.nnz} imports; {len(upward)} ({share:.1%}) lead up, in red"
    ax.set_title(title, fontsize=15)
    ax.set(xticks=[], yticks=[])
    ax.set_ylabel(f"{MEANING}  →", fontsize=13)
    colors = "grey: the upper module imports the lower one; red: the lower imports the upper"
    ax.set_xlabel(colors, fontsize=13)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return ax


def side_view(landscape: Landscape) -> np.ndarray:
    """Rank along the longest axis of the map, and height."""
    plane = landscape.model.embedding_[:, :-1].astype(np.float64)
    plane = plane - plane.mean(axis=0)
    axis = np.linalg.svd(plane, full_matrices=False)[2][0]
    across = plane @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    # ranks, because a few modules far off would take most of the width
    rank = np.argsort(np.argsort(across, kind="stable"), kind="stable")
    return np.column_stack([rank / max(len(rank) - 1, 1), landscape.height])


def _write_names(ax, places, names: list[str], wanted: list[int], clear) -> None:
    """Names of modules, with a ring; not those that would cover another or these places."""
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    figure, halo = ax.figure, [withStroke(linewidth=2.5, foreground="white", alpha=0.8)]
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    taken: list[Any] = [Bbox([dot - 2, dot + 2]) for dot in ax.transData.transform(clear)]
    for i in wanted:
        for across, up in SIDES:
            text = ax.annotate(
                _inner(names[i]), places[i], xytext=(across, up), textcoords="offset points",
                fontsize=10, ha="left" if across > 0 else "right", va="bottom" if up > 0 else "top",
                zorder=4, path_effects=halo,
            )  # fmt: skip
            box, dot = text.get_window_extent(renderer), ax.transData.transform(places[i])
            end = dot + np.array([across, up]) * figure.dpi / 72
            inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
            middle = (dot + end) / 2  # the name, and the far half of its line, have to be free
            needed = (box, Bbox([np.minimum(middle, end), np.maximum(middle, end)]))
            if inside and not any(one.overlaps(other) for one in needed for other in taken):
                taken += [box, Bbox([dot - 2, dot + 2])]
                ring = {"marker": "o", "fillstyle": "none", "color": "black", "zorder": 4}
                ax.plot(*places[i], markersize=6, markeredgewidth=0.8, **ring)
                line = {"arrowstyle": "-", "linewidth": 0.6}
                ax.annotate("", places[i], (across, up), "data", "offset points", line, zorder=3)
                break
            text.remove()


def write_page(landscape: Landscape, path: Path, title: str) -> None:
    """The page to explore, with upward imports as red lines."""
    from finsler_ext.plot import explore

    names, graph = landscape.imports.names, landscape.imports.graph
    upward: dict[int, list[str]] = {}
    for source, target in landscape.upward().tolist():
        upward.setdefault(source, []).append(_inner(names[target]))
    rows = range(len(names))
    hover = {
        "module": np.array(names, dtype=object),
        "imports": np.diff(graph.indptr),
        "imported by": np.bincount(graph.indices, minlength=len(names)),
        "imports upwards": np.array([listed(upward.get(i, ["none"])) for i in rows], dtype=object),
    }
    explore(
        landscape.model, path, labels={"part": landscape.packages()}, hover=hover, title=title,
        height_label=MEANING, lines=landscape.upward(), lines_label=RED,
    )  # fmt: skip


def _draw(landscape: Landscape, path: Path, title: str) -> None:
    if path.suffix.lower().lstrip(".") in PAGES:
        write_page(landscape, path, title)
        return
    with save_figure(path, 1) as (ax,):
        ax.figure.set_size_inches(*SIZE)
        draw_landscape(landscape, ax)
        ax.set_title(f"{title}: {ax.get_title()}")


# ------------------------------------------------------------------ command


def imports_command(options, interrupts: Interrupts) -> int:
    output = Path(options.output or f"{options.package}_imports.csv")
    check_output(output)
    plots = check_plots(options.plot, 0, output)
    stage(f"reading {shown(options.package)}")
    imports = read_imports(options.package, options.without)
    started = time.perf_counter()
    with warnings_as_notes():
        landscape = fit_imports(imports, options.seed, options.threads)
    seconds = time.perf_counter() - started
    interrupts.check()
    model, names = landscape.model, landscape.imports.names
    parts = landscape.packages()
    write_output(output, model.embedding_, names, parts, "part", model.potential_)
    interrupts.written.append(shown(output))
    for plot in plots:
        stage(f"drawing {shown(plot)}")
        _draw(landscape, plot, options.package)
        interrupts.written.append(shown(plot))
    if landscape.left_out:
        note(
            f"{len(landscape.left_out)} modules are not on the map, as no chain of imports leads "
            f"from them to the others: {listed(landscape.left_out)}"
        )
    _report(imports, landscape)
    print(
        f"Embedded {len(names)} modules with {landscape.imports.graph.nnz} imports in "
        f"{seconds:.1f} s; written to {joined(interrupts.written)}. {verdict(model)}"
    )
    return 0


def _report(imports: Imports, landscape: Landscape) -> None:
    upward, names = landscape.upward(), landscape.imports.names
    within = landscape.in_cycles(upward)
    print(
        f"Imports that lead up: {len(upward)} of {landscape.imports.graph.nnz}, {within.sum()} of "
        "them in cycles"
    )
    for (source, target), cyclic in zip(upward[:PRINTED], within, strict=False):
        print(f"  {names[source]} -> {names[target]}{' (in a cycle)' if cyclic else ''}")
    if len(upward) > PRINTED:
        print(f"  and {len(upward) - PRINTED} more")
    cycles = imports.cycles()
    print(f"Cycles: {len(cycles)}")
    for cycle in cycles[:PRINTED]:
        print(f"  {len(cycle)} modules: {listed(cycle)}")
    if len(cycles) > PRINTED:
        print(f"  and {len(cycles) - PRINTED} more")
