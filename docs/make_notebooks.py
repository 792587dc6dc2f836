"""Three examples of the gallery as notebooks: ``python docs/make_notebooks.py``.

The sources are the files in ``docs/examples``. A test compares the notebooks with what this script
makes of them, and a slow one runs them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parent
FOLDER = DOCS / "notebooks"
# Notebooks by the example that they are made from.
SHOWN = {
    "digits": "1_height/plot_1_digits",
    "density": "1_height/plot_2_density",
    "flights": "2_directed/plot_1_flights",
}
SETTINGS = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(source: str, name: str) -> dict:
    """An example in sphinx-gallery's form as a notebook without output."""
    title, *parts = re.split(r"^# %%$\n", source, flags=re.M)
    heading, first = re.fullmatch(r'"""\n(.*?)"""\n(.*)', title, re.S).groups()
    note = f"*Made from `docs/examples/{name}.py`. Needs `pip install '.[plot]'` in a clone.*"
    cells = [("markdown", f"{markdown(heading)}\n\n{note}"), ("code", first)]
    for part in parts:
        text = re.match(r"(?:#.*\n)*", part)[0]
        cells += [("markdown", markdown(re.sub(r"^# ?", "", text, flags=re.M)))]
        cells += [("code", part[len(text) :])]
    filled = [(kind, text.strip()) for kind, text in cells if text.strip()]
    made = [cell(kind, text, number) for number, (kind, text) in enumerate(filled)]
    return {"cells": made, "metadata": SETTINGS, "nbformat": 4, "nbformat_minor": 5}


def markdown(text: str) -> str:
    """The little reStructuredText of the examples: titles, code and links to pages."""
    text = re.sub(r"^(.+)\n=+$", r"# \1", text.strip(), flags=re.M)
    text = re.sub(r":doc:`([^`<]+) </[^`]+>`", r"\1", text)
    text = re.sub(r":doc:`/?([^`]+)`", r"`docs/\1`", text)
    return text.replace("``", "`")


def cell(kind: str, text: str, number: int) -> dict:
    made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    lines = text.splitlines(keepends=True)
    if kind == "code":
        return {**made, "execution_count": None, "outputs": [], "source": lines}
    return {**made, "source": lines}


def made_of(name: str) -> str:
    """The text of the notebook of an example."""
    source = (DOCS / "examples" / f"{name}.py").read_text(encoding="utf-8")
    return json.dumps(notebook(source, name), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, example in SHOWN.items():
        (FOLDER / f"{name}.ipynb").write_text(made_of(example), "utf-8")
