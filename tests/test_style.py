"""Rules of CONTRIBUTING that code can be asked about."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import finsler_ext

ROOT = Path(__file__).parents[1]
PACKAGE = Path(finsler_ext.__file__).parent
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
# Who may import whom, within functions too: each layer those before it. Private modules serve all.
LAYERS = (
    ("schema",),
    ("geometry", "validation"),
    ("scales",),
    ("neighbors",),
    ("directed",),
    ("asymmetry", "io"),
    ("evidence", "metrics"),
    ("height", "drift_field", "explain"),
    ("base",),
    ("umap", "tsne", "mds"),
    ("aligned", "spectral"),
    ("dask", "plot", "scanpy"),
    ("cli",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# Packages that are heavy to import, and where they may be.
HOMES = {"umap": ("umap", "dask", "io"), "openTSNE": ("tsne", "io")}
# What an exception or a choice says in words.
WORDS = ("reason", "str(error)", "message", "str(note.message)", "line")


def imports(tree):
    """Modules that a module imports when it is, or in its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:  # a module of a package, or a name in a module
                full = f"{node.module}.{name.name}"
                yield full if dotted_path(full) in MODULES else node.module


def dotted_path(name: str) -> str:
    return name.removeprefix("finsler_ext.").replace(".", "/") + ".py"


def part(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def test_nothing_points_back():
    back = []
    for module, tree in TREES.items():
        for name in imports(tree):
            here = part(module)
            target = name.split(".")[1] if name.startswith("finsler_ext.") else here
            if target != here and RANK.get(here, 99) <= RANK.get(target, -1):
                back.append(f"{module} imports {name}")
    assert back == []


def test_modules_do_not_import_each_other_in_circles():
    graph = {}
    for module, tree in TREES.items():
        if module != "__init__.py":  # the names of the package, for users
            ours = (name for name in imports(tree) if name.startswith("finsler_ext."))
            paths = set(map(dotted_path, ours))
            folders = {path.removesuffix(".py") + "/__init__.py" for path in paths}
            graph[module] = (paths | folders) & set(MODULES)
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_every_part_has_a_layer():
    parts = {part(module) for module in MODULES}
    assert {name for name in parts if not name.startswith("_")} == set(RANK)


def test_parents_are_imported_in_their_folders():
    found = []
    for module, tree in TREES.items():
        for name in imports(tree):
            homes = HOMES.get(name.split(".")[0])
            if homes is not None and part(module) not in homes:
                found.append(f"{module} imports {name}")
    assert found == []


def test_contributing_is_short_and_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1200
    folders = (ROOT, PACKAGE)
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md))`", text)
    assert len(named) > 40
    siblings = {path.name for path in MODULES.values()} | {"README.md"}
    for name in named:
        known = name in siblings or any((folder / name).exists() for folder in folders)
        assert known, name


def test_no_words_decide():
    """A warning filter or a branch that looks for words breaks when the words change."""
    found = []
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                inside = ast.unparse(node.comparators[0])
                if inside in WORDS or inside.endswith(".reason"):
                    found.append((module, ast.unparse(node)))
    assert found == []


def test_messages_of_other_packages_are_known_in_one_place():
    calls = [
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "filterwarnings"
    ]
    assert calls == ["_messages.py"]


def test_functions_are_short():
    """A body of about 60 lines without the docstring, and a dozen arguments.

    Compiled kernels take arrays one by one. Constructors of estimators, and functions that stand
    for them, take their parameters; an optimiser of openTSNE's takes those of its parent.
    """
    allowed = {"__init__", "finsler_smacof", "finsler_mds_gd"}
    long = []
    for module, tree in TREES.items():
        kernels = {
            node
            for kernel in ast.walk(tree)
            if isinstance(kernel, ast.FunctionDef) and _is_kernel(kernel)
            for node in ast.walk(kernel)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or node in kernels or node.name in allowed:
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = node.end_lineno - body[0].lineno if body else 0
            arguments = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg != "self"]
            if lines > 62 or (len(arguments) > 12 and node.name != "__call__"):
                long.append((module, node.name, lines, len(arguments)))
    assert long == []


def _is_kernel(function) -> bool:
    """Compiled, or a factory whose whole body is compiled functions."""
    compiled = any("jit" in ast.unparse(d) for d in function.decorator_list)
    return compiled or function.name.endswith(("_kernel", "_kernels"))
