"""The README's example runs, and its test command is the one that CI finds."""

import re
from pathlib import Path

from umap import UMAP

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    names: dict = {}
    exec(code, names)
    assert names["embedding"].shape == (1797, 3)
    assert "skew fidelity" in capsys.readouterr().out


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
