"""The README's examples run, and its test command is the one that CI finds."""

import re
from pathlib import Path

import pytest
from umap import UMAP

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"<!-- example -->\n```python\n(.*?)```", README, re.S))
def test_the_examples_run(code, capsys):
    names: dict = {}
    exec(code, names)
    model = names["model"]
    assert names["embedding"].shape == (len(model.embedding_), model.n_components)
    assert "skew fidelity" in capsys.readouterr().out


def test_every_piece_of_python_is_an_example():
    assert README.count("```python") == README.count("<!-- example -->\n```python") > 0


def test_both_commands_are_one_line_each():
    for name in ("demo", "tests"):
        (line,) = re.findall(rf"<!-- {name} -->\n```sh\n(.*)\n```", README)
        assert line.startswith("python3 -m venv")


def test_the_table_has_every_parameter_and_method_of_umap():
    table = README[README.index("<!-- umap -->") : README.index("</details>")]
    left = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    named = re.findall(r"`([a-z_]+)`", " ".join(left))
    methods = [
        name
        for name in vars(UMAP)
        if not name.startswith(("_", "set_")) and callable(getattr(UMAP, name))
    ]
    assert set(UMAP().get_params()) | set(methods) <= set(named)
    assert len(named) == len(set(named))
