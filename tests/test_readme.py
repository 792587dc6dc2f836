"""The README's example runs, and its test command is the one that CI finds."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"<!-- example -->\n```python\n(.*?)```", README, re.S))
def test_the_examples_run(code, capsys):
    names: dict = {}
    exec(code, names)
    assert names["embedding"].shape == (1797, 3)
    assert "skew fidelity" in capsys.readouterr().out


def test_both_commands_are_one_line_each():
    for name in ("demo", "tests"):
        (line,) = re.findall(rf"<!-- {name} -->\n```sh\n(.*)\n```", README)
        assert line.startswith("python3 -m venv")
