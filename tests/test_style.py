"""Rules of CONTRIBUTING that code can be asked about."""

import ast
import re
from pathlib import Path

import finsler_ext

PACKAGE = Path(finsler_ext.__file__).parent
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
# Constants that are written twice on purpose.
TWICE = {
    "MOST_EDGE_COLUMNS",  # a command that reads a table imports no reader of frames
    "LARGEST",  # nor a graph
    "PATIENCE",  # seconds before a bar is shown, of two commands
    "MAX_ITERATIONS",  # of two solvers that have nothing to do with each other
}
# What an exception or a choice says in words.
WORDS = ("reason", "str(error)", "message", "str(note.message)", "line")


def constants(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper() and not name.startswith("_"):
                yield name, ast.unparse(node.value)


def test_a_constant_has_one_home():
    """BLOCK_ROWS was written seven times, ROUNDING four times with four values."""
    homes: dict[tuple[str, str], list[str]] = {}
    for module, tree in TREES.items():
        for constant in constants(tree):
            homes.setdefault(constant, []).append(module)
    again = {name: found for (name, _), found in homes.items() if len(found) > 1}
    assert again.keys() <= TWICE, again
    for name in ("BLOCK_ROWS", "ROUNDING"):
        assert sum(found[0] == name for found in homes) <= 1


def test_tests_that_contributing_names_exist():
    root = Path(__file__).parents[1]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named, file = 0, ""
    for found, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text):
        file = found or file
        if file:
            source = (root / file).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in source, (file, name)
            named += bool(name)
    assert named > 10


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
    assert calls == ["_warn.py"]


def test_functions_are_short():
    """About 60 lines without the docstring, and 10 arguments.

    Compiled kernels take arrays one by one. Constructors of estimators, and functions that stand
    for them, take their parameters.
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
            lines = node.end_lineno - node.lineno
            if ast.get_docstring(node):
                lines -= node.body[0].end_lineno - node.body[0].lineno
            arguments = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg != "self"]
            if lines > 62 or len(arguments) > 10:
                long.append((module, node.name, lines, len(arguments)))
    assert long == []


def _is_kernel(function) -> bool:
    """Compiled, or a factory whose whole body is a compiled function."""
    compiled = any("jit" in ast.unparse(d) for d in function.decorator_list)
    return compiled or function.name.endswith("_kernel")
