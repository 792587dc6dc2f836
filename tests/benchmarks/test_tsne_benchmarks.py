"""The t-SNE benchmark scripts run from end to end on small data."""

from benchmarks import speed, tsne_grid, tsne_quality


def test_quality_runs_are_kept_and_not_repeated(tmp_path, capsys):
    options = ["iris", "--seeds", "1", "--methods", "opentsne_2d"]
    options += ["finsler_0.5", "free_0.5", "paper_0.5", "paper_wide_0.5", "new_0.01"]
    options += ["--results", str(tmp_path / "runs.csv")]
    tsne_quality.main(options)
    lines = (tmp_path / "runs.csv").read_text()
    out = capsys.readouterr().out
    assert "finsler_0.5: behind opentsne_3d on no set; map behind opentsne_2d on no set" in out
    assert "Share of new heights outside the training range" in out
    tsne_quality.main(options)
    assert (tmp_path / "runs.csv").read_text() == lines


def test_speed_prints_its_table(tmp_path, capsys):
    options = ["tsne", "--data", "1100", "--methods", "finsler_3d", "--steps", "2", "3"]
    speed.main([*options, "--results", str(tmp_path / "speed.csv")])
    assert "ms_per_step" in capsys.readouterr().out
    assert len((tmp_path / "speed.csv").read_text().splitlines()) == 2


def test_grid_sizes_are_timed(capsys):
    tsne_grid.main(["--sizes", "300", "--n-iter", "20", "--dimensions", "1", "2", "3"])
    out = capsys.readouterr().out
    assert "FFTs alone" in out
    assert out.count("of the tree") == 4
