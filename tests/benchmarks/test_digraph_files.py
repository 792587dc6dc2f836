import numpy as np
import pytest

from benchmarks.data import digraphs
from benchmarks.data.digraphs import digraph, planted_digraph, strong_part


def dense(name, folder):
    return digraph(name, str(folder)).toarray()


def test_every_format_is_read(tmp_path):
    (tmp_path / "herm_full_edgelist.csv").write_text(
        "Source,Target,Weight,Type\nA , B ,3,chemical\nB,A,1,electrical\nB,C,2,chemical\n"
        "C,A,1,chemical\nA,muscle,9,chemical\nA,A,2,chemical\n"
    )
    assert dense("celegans", tmp_path).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    (tmp_path / "cora.cites").write_text("1\t2\n1\t3\n2\t3\n")
    # the cited paper comes first
    assert dense("cora", tmp_path).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    (tmp_path / "email-eu-core.txt").write_text("0 1\n1 2\n2 2\n")
    assert dense("email", tmp_path).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    (tmp_path / "routes.dat").write_text(
        "2B,410,AER,2965,KZN,2990,,0,CR2\n2B,410,KZN,2990,AER,2965,,0,CR2\n"
        "XX,1,AER,2965,KZN,2990,,0,CR2\n"
    )
    assert dense("airlines", tmp_path).tolist() == [[0, 1], [1, 0]]
    (tmp_path / "Town_net.tntp").write_text(
        "<NUMBER OF ZONES> 1\n<FIRST THRU NODE> 2\n<END OF METADATA>\n\n"
        "~ init term capacity length time b power speed toll type ;\n"
        "\t1\t2\t99\t1\t7.5\t0\t4\t0\t0\t1\t;\n\t2\t3\t99\t1\t2.5\t0\t4\t0\t0\t1\t;\n"
        "\t3\t2\t99\t1\t3.5\t0\t4\t0\t0\t1\t;\n\t3\t2\t99\t1\t1.5\t0\t4\t0\t0\t1\t;\n"
    )
    assert dense("road:Town", tmp_path).tolist() == [[0, 2.5], [1.5, 0]]
    np.savez(tmp_path / "polblogs.npz", edges=np.array([[0, 2], [2, 1]]), n=3)
    assert dense("polblogs", tmp_path).tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    def offline(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr(digraphs, "urlopen", offline)
    with pytest.raises(FileNotFoundError, match=r"cora\.cites .*no network"):
        digraph("cora", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"polblogs\.npz"):
        digraph("polblogs", str(tmp_path))
    with pytest.raises(ValueError, match="known are"):
        digraph("nothing")


def test_planted_edges_lead_downhill_and_parts_are_connected():
    graph, level = planted_digraph(200, 6, noise=0.0)
    source, target = graph.tocoo().coords
    assert (level[source] > level[target]).all()
    noisy, _ = planted_digraph(200, 6, noise=1.0)
    part = strong_part(noisy)
    assert 1 < part.shape[0] <= strong_part(noisy, weak=True).shape[0] <= 200
