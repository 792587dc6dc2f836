"""``finsler-ext embed --directed``: columns by name, every kind of file, planted drifts."""

import csv
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import finsler_ext
from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerUMAP, read_directed
from finsler_ext.cli import main
from finsler_ext.directed.potential import graph_potential
from tests.cli.commands import table
from tests.directed_data import NAMES, edges, planted, towns, twice

# Drift and columns are those of the estimators unless the user asks to look for them.
SEARCH = ("--omega-norm", "auto", "--components", "auto")
GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "directed.md").read_text()


@pytest.fixture
def run(run):
    """Run ``embed`` in an empty folder; returns what it printed."""
    return partial(run, "embed")


def write(name, rows, header=None, delimiter=","):
    with open(name, "w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        if header is not None:
            writer.writerow(header)
        writer.writerows(rows)


def cells(D):
    return [["" if np.isnan(value) else repr(float(value)) for value in row] for row in D]


def edge_rows(D, names=NAMES, order=(0, 1, 2)):
    rows = [(names[i], names[j], repr(float(d))) for i, j, d in zip(*edges(D), strict=True)]
    return [[row[c] for c in order] for row in rows]


def heights():
    return np.array([float(row["height"]) for row in table("out.csv")])


# ------------------------------------------------------------------ columns by name


@pytest.mark.parametrize(
    ("header", "order"),
    [
        (("source", "target", "weight"), (0, 1, 2)),
        (("target", "source", "weight"), (1, 0, 2)),
        (("head", "tail", "weight"), (1, 0, 2)),
        (("to", "from", "minutes"), (1, 0, 2)),
        (("weight", "source", "target"), (2, 0, 1)),
        (("post", "cost", "pre"), (1, 2, 0)),
        (("Destination", "Origin", "km"), (1, 0, 2)),
    ],
)
def test_headers_say_which_way_edges_lead(run, header, order):
    Y, D = planted("height", 0.4, n=40)
    write("edges.csv", edge_rows(D, order=order), header)
    printed = run("edges.csv", "--directed", "-o", "out.csv", "--omega-norm", "0.4")
    ends = {"source": "source pre tail from Origin", "target": "target post head to Destination"}
    for role, names in ends.items():
        (name,) = [name for name in header if name in names.split()]
        assert f"{role} = {name}" in printed.err
    assert f"length = {header[order.index(2)]}; 40 nodes, " in printed.err
    assert [row["row"] for row in table("out.csv")] == NAMES
    assert np.corrcoef(heights(), Y[:, -1])[0, 1] > 0.99


def test_tail_and_head_are_no_nodes(run):
    write(
        "hops.csv", [(i, (i + step) % 12) for i in range(12) for step in (1, 3)], ("tail", "head")
    )
    printed = run("hops.csv", "--directed", "-o", "out.csv", "--omega-norm", "0.2").out
    assert "12 points with 24 directed distances" in printed
    assert [row["row"] for row in table("out.csv")] == [str(i) for i in range(12)]


def test_columns_of_a_matrix_are_matched_to_rows_by_name(run):
    D = towns()
    rows = [[name, *row] for name, row in zip(NAMES, cells(D), strict=True)]
    write("straight.csv", rows, ("", *NAMES))
    shuffled = np.random.default_rng(0).permutation(len(D))
    rows = [[name, *row] for name, row in zip(NAMES, cells(D[:, shuffled]), strict=True)]
    write("shuffled.csv", rows, ("", *(NAMES[i] for i in shuffled)))
    for name in ("straight", "shuffled"):
        run(f"{name}.csv", "--directed", "-o", f"{name}.npy")
    assert np.array_equal(np.load("straight.npy"), np.load("shuffled.npy"))
    write("lost.csv", rows, ("", *(f"x{i}" for i in shuffled)))
    error = run("lost.csv", "--directed", code=2).err
    assert "'town00' is a row and not a column (40 such rows)" in error


def test_a_matrix_of_nodes_called_like_columns(run):
    names = ["from", "to", "u", "v", "source", "target"]
    D = planted("height", 0.4, n=6, missing=0)[1]
    write("words.csv", [[n, *row] for n, row in zip(names, cells(D), strict=True)], ("", *names))
    run("words.csv", "--directed", "-o", "out.csv", "--omega-norm", "0.4")
    assert [row["row"] for row in table("out.csv")] == names
    write("letters.csv", [("u", "v", 1), ("v", "w", 2), ("w", "u", 3), ("u", "x", 4)])
    run("letters.csv", "--directed", "-o", "out.csv", "--omega-norm", "0.1")
    assert [row["row"] for row in table("out.csv")] == ["u", "v", "w", "x"]


@pytest.mark.parametrize(
    ("header", "arguments", "message"),
    [
        (("p", "q", "r"), (), "none is known as the source"),
        (("source", "target", "synapses"), (), "--values 'strength' or --values 'cost'"),
        (("source", "from", "to"), (), "could all be the source"),
        (("p", "q", "r"), ("--source", "p"), "known to be the target"),
        (("p", "q", "r"), ("--source", "p", "--target", "z"), "'z' is not a column"),
        (("from", "to", "from"), (), "several columns 'from'"),
    ],
)
def test_headers_that_are_not_known(run, header, arguments, message):
    write("edges.csv", edge_rows(towns()), header)
    (line,) = run("edges.csv", "--directed", *arguments, code=2).err.splitlines()
    assert message in line


def test_a_file_without_a_header_says_how_it_was_read(run):
    D = towns()
    write("edges.csv", edge_rows(D))
    (note,) = run("edges.csv", "--directed", "-o", "a.npy").err.splitlines()
    assert "an edge list without a header, in the order source, target, length, the first" in note
    assert re.search(r"; 40 nodes, 1,163 edges, 25 % one-way$", note)
    write("matrix.csv", cells(D))
    (note,) = run("matrix.csv", "--directed", "-o", "b.npy").err.splitlines()
    assert "a square matrix without names, rows being sources" in note
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))


def test_columns_named_by_the_user_and_strengths(run):
    rng = np.random.default_rng(0)
    D = planted("height", 0.4, n=30, missing=0)[1]
    counts = rng.poisson(30 * np.exp(-D / 10))
    i, j = np.nonzero(counts * (1 - np.eye(30, dtype=int)))
    rows = [(a, b, counts[a, b], 2020) for a, b in zip(i, j, strict=True)]
    write("clicks.csv", rows, ("page", "next", "n", "year"))
    ends = ("--source", "page", "--target", "next", "--weight", "n")
    assert "looks like a strength" in run("clicks.csv", "--directed", *ends, code=2).err
    run("clicks.csv", "--directed", *ends, "--values", "strength", "-o", "a.npy")
    np.save("counts.npy", np.where(np.eye(30) > 0, 0, counts))
    run("counts.npy", "--directed", "--values", "strength", "-o", "b.npy")
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.save("shares.npy", shares)
    run("shares.npy", "--directed", "--values", "transitions", "-o", "c.npy")
    assert "row 0 sums to" in run("counts.npy", "--directed", "--values", "transitions", code=2).err


# ------------------------------------------------------------------ every kind of file


def files(D):
    """The same distances in every kind of file that can hold them."""
    write("named.csv", [[n, *row] for n, row in zip(NAMES, cells(D), strict=True)], ("", *NAMES))
    write("header.tsv", cells(D), NAMES, delimiter="\t")
    write("plain.csv", cells(np.where(np.isnan(D), np.inf, D)))
    write("edges.csv", edge_rows(D, order=(2, 1, 0)), ("weight", "target", "source"))
    np.save("dense.npy", D)
    np.savez("dense.npz", D=D, names=NAMES)
    scipy.sparse.save_npz("sparse.npz", scipy.sparse.csr_matrix(twice(D)))
    np.save("edges.npy", np.column_stack(edges(D)))
    names = ["named.csv", "header.tsv", "plain.csv", "edges.csv", "dense.npy", "dense.npz"]
    names += ["sparse.npz", "edges.npy"]
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        return names
    columns = dict(zip(NAMES, D.T, strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), "square.parquet")
    source, target, length = edges(D)
    ends = {"to": np.array(NAMES)[target], "km": length, "from": np.array(NAMES)[source]}
    pyarrow.parquet.write_table(pyarrow.table(ends), "edges.parquet")
    return [*names, "square.parquet", "edges.parquet"]


@pytest.mark.filterwarnings("ignore:perplexity=30")
@pytest.mark.parametrize("method", ["umap", "tsne", "mds"])
def test_every_kind_of_file_gives_the_same_bits(run, method):
    D = towns()
    run_of = {}
    for name in files(D):
        run(name, "--directed", "--method", method, "-o", "out.npy", "--threads", "1")
        run_of[name] = np.load("out.npy")
    first, *others = run_of.values()
    assert all(np.array_equal(first, other) for other in others), list(run_of)
    estimator = {"umap": "FinslerUMAP", "tsne": "FinslerTSNE", "mds": "FinslerMDS"}[method]
    model = getattr(finsler_ext, estimator)(metric="precomputed", random_state=0)
    assert np.array_equal(first, model.fit_transform(D))  # with its own defaults


def test_cells_of_an_h5ad_file(run):
    anndata = pytest.importorskip("anndata")
    T = np.random.default_rng(0).random((30, 30)) ** 4
    adata = anndata.AnnData(np.zeros((30, 1), dtype=np.float32))
    adata.obsp["T_fwd"] = scipy.sparse.csr_matrix(T / T.sum(axis=1, keepdims=True))
    adata.write_h5ad("cells.h5ad")
    run("cells.h5ad", "--directed", "-o", "a.npy", "--omega-norm", "0.2")
    np.save("T.npy", adata.obsp["T_fwd"].toarray())
    run("T.npy", "--directed", "--values", "transitions", "-o", "b.npy", "--omega-norm", "0.2")
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))


# ------------------------------------------------------------------ drift and columns


@pytest.mark.parametrize("omega", [0.05, 0.15, 0.3, 0.6])
@pytest.mark.parametrize("kind", ["planar", "height"])
def test_planted_drifts_are_reported(run, kind, omega):
    Y, D = planted(kind, omega, noise=0.01)
    names = [f"s{i}" for i in range(len(D))]
    write("edges.csv", edge_rows(D, names), ("from", "to", "minutes"))
    printed = run("edges.csv", "--directed", *SEARCH, "-o", "out.csv").out
    found = float(re.search(r"omega_norm=([0-9.]+)", printed)[1].rstrip("."))
    assert found == pytest.approx(omega, rel=0.1)
    columns = ["x", "height"] if kind == "planar" else ["x", "y", "height"]
    columns.append("potential")
    assert list(table("out.csv")[0]) == ["row", *columns]
    shown = {row["row"]: float(row["height"]) for row in table("out.csv")}
    assert np.corrcoef([shown[name] for name in names], Y[:, -1])[0, 1] > 0.99
    assert "with 2 columns and" in printed


def test_the_example_of_the_guide_reports_what_it_says(run):
    start = "import numpy as np\nfrom finsler_ext import FinslerMDS"
    code = GUIDE[GUIDE.index(start) :].partition("```")[0]
    names: dict = {}
    exec(code, names)
    np.savetxt("times.csv", names["times"], delimiter=",", fmt="%.17g")
    printed = run("times.csv", "--directed", *SEARCH, "-o", "out.csv", "--plot", "times.png").out
    assert "omega_norm=0.15;" in printed
    assert "2 are enough" in printed
    west = -names["east_north"][:, 0]
    assert np.corrcoef(heights(), west)[0, 1] > 0.999
    assert Path("times.png").read_bytes().startswith(b"\x89PNG")
    assert names["model"].omega_norm_ == pytest.approx(0.15, abs=1e-3)


def test_the_number_of_columns_can_be_given(run, capsys):
    np.save("D.npy", planted("planar", 0.3)[1])
    printed = run("D.npy", "--directed", "--omega-norm", "auto", "-o", "out.csv")
    assert list(table("out.csv")[0]) == ["row", "x", "y", "height", "potential"]
    assert "2 columns fit as well as 3" in printed.err
    run("D.npy", "--directed", "--components", "4", "--method", "umap", "-o", "out.csv")
    assert list(table("out.csv")[0]) == ["row", "x", "y", "map3", "height", "potential"]
    assert "--directed" in run("D.npy", "--source", "a", code=2).err
    one = ("D.npy", "--directed", "--components", "1")
    assert "two columns or more" in run(*one, "--plot", "a.png", code=2).err
    run(*one, "-o", "out.csv")
    assert list(table("out.csv")[0]) == ["row", "height", "potential"]
    with pytest.raises(SystemExit) as stop:
        main(["embed", "D.npy", "--components", "none"])
    assert stop.value.code == 2
    assert "a whole number of columns" in capsys.readouterr().err
    many = ("D.npy", "--directed", "--components", "auto", "--method", "umap")
    assert "--components auto is for mds" in run(*many, code=2).err


def test_without_options_drift_and_columns_are_those_of_python(run):
    """The command searched for a drift and columns, and the estimator did not."""
    np.save("D.npy", planted("planar", 0.15)[1])
    assert "omega_norm=0.5;" in run("D.npy", "--directed", "-o", "out.npy").out
    model = finsler_ext.FinslerMDS(metric="precomputed").fit(np.load("D.npy"))
    assert np.array_equal(np.load("out.npy"), model.embedding_)


# ------------------------------------------------------------------ as in Python


def test_a_digraph_comes_out_as_in_python(run):
    """The command added shortest paths: 100 % of the pairs ordered, where Python had 96 %."""
    graph, _ = planted_digraph(60, 4, seed=0)
    source, target = graph.tocoo().coords
    write("cites.csv", list(zip(source, target, strict=True)), ("from", "to"))
    err = run("cites.csv", "--directed", "-o", "a.npy", "--omega-norm", "0.3").err
    assert "source = from, target = to; 60 nodes" in err
    assert "FinslerUMAP, because 99 % of the edges are one-way" in err
    assert "--method mds" in err
    model = FinslerUMAP(metric="precomputed", omega_norm=0.3, random_state=0)
    columns = {"from": source.tolist(), "to": target.tolist()}
    assert np.array_equal(np.load("a.npy"), model.fit_transform(columns))


def test_strengths_come_out_as_in_python(run):
    S = np.random.default_rng(0).lognormal(size=(40, 40)) * (np.arange(40)[:, None] % 7 > 2)
    np.save("counts.npy", S)
    assert (
        "FinslerUMAP, because strengths"
        in run("counts.npy", "--directed", "--values", "strength", "-o", "a.npy").err
    )
    model = FinslerUMAP(metric="precomputed", random_state=0)
    assert np.array_equal(
        np.load("a.npy"), model.fit_transform(read_directed(S, values="strength"))
    )


def test_the_table_has_the_potential(run):
    graph, _ = planted_digraph(40, 4, seed=0)
    source, target = graph.tocoo().coords
    write("cites.csv", list(zip(source, target, strict=True)), ("from", "to"))
    run("cites.csv", "--directed", "-o", "out.csv")
    rows = table("out.csv")
    assert list(rows[0]) == ["row", "x", "y", "height", "potential"]
    order = [int(row["row"]) for row in rows]
    expected = graph_potential(graph).values[order]
    assert [float(row["potential"]) for row in rows] == pytest.approx(expected, abs=1e-6)
