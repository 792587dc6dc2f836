"""Which functions a change touches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_HEADING = re.compile(r"^(\s*)(?:cdef|cpdef|def|class)\b.*?(\w+)\s*\(")
_MODULE = "<module>"


def changed_functions(before: str, after: str, suffix: str) -> set[str]:
    """Names of the functions whose text differs; ``<module>`` is what is in none."""
    parts = [_python(text) if suffix == ".py" else _cython(text) for text in (before, after)]
    names = set(parts[0]) | set(parts[1])
    return {name for name in names if parts[0].get(name) != parts[1].get(name)}


def changed_in_trees(before: Path, after: Path, files: list[str]) -> set[str]:
    """The same for files of two trees, each name after its file."""
    changed = set()
    for file in files:
        if Path(file).suffix not in (".py", ".pyx"):
            continue
        names = changed_functions(_text(before / file), _text(after / file), Path(file).suffix)
        changed |= {f"{file}:{name}" for name in names}
    return changed


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _python(text: str) -> dict[str, str]:
    tree = ast.parse(text)
    parts = {name: ast.dump(node) for name, node in _walk(tree, "")}
    for node in ast.walk(tree):  # what is left when all functions are emptied
        if isinstance(node, ast.FunctionDef):
            node.body, node.decorator_list = [], []
            node.args = ast.arguments([], [], None, [], [], None, [])
    parts[_MODULE] = ast.dump(tree)
    return parts


def _walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _walk(child, f"{prefix}{child.name}.")


def _cython(text: str) -> dict[str, str]:
    """Cython cannot be parsed here: a function lasts until the next heading."""
    parts: dict[str, str] = {_MODULE: ""}
    name = _MODULE
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            name = heading[2]
        parts[name] = parts.get(name, "") + line + "\n"
    return parts
