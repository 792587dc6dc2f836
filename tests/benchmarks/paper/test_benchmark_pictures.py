"""Figures are drawn from tiny data and from a made-up ledger."""

import pytest

pytest.importorskip("matplotlib")

from benchmarks.ledger import Ledger
from benchmarks.paper import pictures
from benchmarks.paper.pictures import Picture, draw
from benchmarks.paper.runner import ledger_path

PNG = b"\x89PNG"


def drawn(folder):
    found = sorted(folder.iterdir())
    assert all(path.read_bytes().startswith(PNG) for path in found)
    return [path.name for path in found]


def test_methods_side_by_side(tmp_path, monkeypatch, capsys):
    methods = ("isomap_2d", "symmetric_mds_3d", "finsler_mds_0.5_2d", "finsler_mds_0.5_3d")
    tiny = (
        Picture("disk:100", methods[:3], "spacing", ("radius", "procrustes")),
        Picture("clusters:120", methods[2:], "labels", ("height_order", "density")),
    )
    monkeypatch.setattr(pictures, "PICTURES", {"disk": tiny})
    draw("disk", data_dir=None, results=tmp_path, folder=tmp_path / "figures")
    names = ["clusters_120.png", "disk_100.png"]
    assert drawn(tmp_path / "figures") == names
    assert sorted(capsys.readouterr().out.split()) == names


def test_scores_stand_in_the_titles():
    picture = Picture("disk:100", ("isomap_2d", "finsler_mds_0.5_3d"), "spacing",
                      ("radius", "procrustes"))  # fmt: skip
    figure = pictures._side_by_side(picture, pictures.problem_of("disk:100", None, 0))
    plain, ours = (axes.get_title() for axes in figure.axes[:2])
    assert "Isomap\n2-D\n(axis–radius) " in plain
    assert "Finsler MDS\nω = 0.5, 3-D\nheight–radius " in ours
    assert "Procrustes" in plain
    assert len({axes.get_xlim() for axes in figure.axes[:4] if axes.axison}) == 1
    pictures.plt.close(figure)


@pytest.mark.parametrize("family", ["umap", "tsne"])
def test_percent_chart_of_a_ledger(family, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "SMALL", ())
    monkeypatch.setattr(pictures, "LARGE", ())
    draw(family, data_dir=None, results=tmp_path, folder=tmp_path / "figures")
    assert drawn(tmp_path / "figures") == []
    ledger = Ledger(ledger_path(family, tmp_path))
    for seed in range(3):
        for step, method in enumerate((f"{family}_2d", f"{family}_3d", f"finsler_{family}_0.5_3d")):
            scores = {"ami": 0.5 + 0.1 * step + 0.01 * seed, "davies_bouldin": 0.3 + 0.02 * seed}
            ledger.add("iris", method, seed, scores)
    ledger.add("digits", f"{family}_2d", 0, {"ami": 0.5})
    draw(family, data_dir=None, results=tmp_path, folder=tmp_path / "figures")
    assert drawn(tmp_path / "figures") == [f"{family}_percent.png"]


def test_gallery(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "SMALL", ("iris:30",))
    monkeypatch.setattr(pictures, "LARGE", ())
    monkeypatch.setattr(pictures, "GALLERY_METHODS", ("isomap_2d", "finsler_mds_0.5_3d"))
    draw("umap", data_dir=None, results=tmp_path, folder=tmp_path / "figures")
    assert drawn(tmp_path / "figures") == ["gallery_iris.png"]
