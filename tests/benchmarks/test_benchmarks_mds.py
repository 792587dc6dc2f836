"""The benchmark scripts of FinslerMDS run from end to end on small data."""

import numpy as np
import pytest

from benchmarks import mds_quality, planted_drift, speed_mds
from finsler_ext.geometry.randers import randers_distances


def test_quality_of_the_disk_is_kept_and_not_repeated(tmp_path, capsys):
    options = ["disk", "--sizes", "100", "--seeds", "1", "--results", str(tmp_path / "runs.csv")]
    mds_quality.main(options)
    lines = (tmp_path / "runs.csv").read_text()
    assert "ceiling_scale_radius" in capsys.readouterr().out
    mds_quality.main(options)
    assert (tmp_path / "runs.csv").read_text() == lines


def test_quality_of_directed_data_and_cities(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(30, 2))
    D = randers_distances(places, 0.2)
    np.savez(tmp_path / "flights_us_2015jan.npz", D=D, latlon=places)
    T = np.exp(-D)
    np.savez(
        tmp_path / "sc_velocity_cellrank200.npz",
        T=T / T.sum(axis=1, keepdims=True),
        latent_time=places[:, 0],
    )
    np.savez(tmp_path / "us_cities_geonames.npz", X=places, elevation_m=rng.random(30))
    monkeypatch.setattr(mds_quality, "N_CITIES", 30)
    options = ["flights", "velocity", "cities", "--data-dir", str(tmp_path)]
    mds_quality.main([*options, "--results", str(tmp_path / "runs.csv")])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("slide_vector_2d", "r_longitude", "height_elevation"))


def test_missing_data_and_unknown_names(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match=r"polblogs\.npz"):
        mds_quality.main(["polblogs", "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit):
        mds_quality.main(["nothing", "--results", str(tmp_path / "runs.csv")])


def test_speed_prints_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed_mds, "RESULTS", tmp_path / "results" / "speed_mds.csv")
    methods = ["--methods", "sklearn", "finsler_float64"]
    speed_mds.main(["--sizes", "100", "--repeats", "1", *methods])
    assert "times faster than" in capsys.readouterr().out
    assert len((tmp_path / "results" / "speed_mds.csv").read_text().splitlines()) == 3


def test_the_directed_distances_are_positive_and_directed():
    D = speed_mds.directed(700, np.float32)
    assert D.dtype == np.float32
    assert (D[~np.eye(700, dtype=bool)] > 0).all()
    assert not np.allclose(D, D.T)


def test_planted_drifts_are_reported(capsys):
    planted_drift.main(["--drifts", "0.3", "--sizes", "50", "--noise", "0.01", "--seeds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all("1/1" in line for line in lines[1::2])  # with pairs missing
