"""The script that draws the README's pictures, on made-up flights."""

import numpy as np
import pytest

from benchmarks import readme_figures


def test_pictures_are_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    names = [*readme_figures.NAMED, *(f"A{i:02d}" for i in range(32))]
    east_north = rng.uniform(size=(len(names), 2)) * [50, 25]
    step = east_north[None] - east_north[:, None]
    np.savez(
        tmp_path / "flights_us_2015jan.npz",
        D=np.linalg.norm(step, axis=2) - 0.1 * step[..., 0],
        latlon=east_north[:, ::-1],
        names=names,
    )
    readme_figures.main(["--data-dir", str(tmp_path), "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "omega_norm=0.10" in printed
    assert "longitude) = -1.00" in printed
    for name in ("flights.png", "digits.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_missing_flights_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(readme_figures, "digits", lambda out: None)
    monkeypatch.setattr(readme_figures, "page", lambda model, out: None)
    readme_figures.main(["--data-dir", str(tmp_path), "--output", str(tmp_path)])
    assert "flights_us_2015jan.npz not found" in capsys.readouterr().out
