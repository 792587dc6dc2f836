"""The door for directed data: every container, names of columns, strengths, missing pairs."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, read_directed
from finsler_ext.asymmetry import gradient_share
from finsler_ext.directed.data import read_matrix
from finsler_ext.directed.edge_lists import find_ends
from finsler_ext.directed.read import as_matrix, check_range, fill_missing
from finsler_ext.metrics import potential

pd = pytest.importorskip("pandas")
nan = np.nan

# from a to b it takes 2, from b to a 1, from c to a 4; nothing else is known
D = np.array([[0, 2, nan], [1, 0, nan], [4, nan, 0.0]])
NAMES = ["a", "b", "c"]
EDGES = {"source": ["a", "b", "c"], "target": ["b", "a", "a"], "weight": [2.0, 1.0, 4.0]}


def check(data, names=NAMES):
    assert data.names == names
    np.testing.assert_array_equal(read_matrix(data.distances), D)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("source", "target"),
        ("from", "to"),
        ("tail", "head"),
        ("u", "v"),
        ("origin", "destination"),
        ("pre", "post"),
        ("From", " TO"),
    ],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (1, 2, 0)])
def test_columns_of_an_edge_list_are_known_by_name(source, target, order):
    columns = list(zip((source, target, "minutes"), EDGES.values(), strict=True))
    columns = dict(columns[c] for c in order)
    check(read_directed(columns))
    check(read_directed(pd.DataFrame(columns)))
    polars = pytest.importorskip("polars")
    check(read_directed(polars.DataFrame(columns)))


def test_columns_can_be_named_by_the_user():
    odd = dict(zip(("p1", "p2", "x", "year"), [*EDGES.values(), [1, 2, 3]], strict=True))
    check(read_directed(odd, source="p1", target="p2", weight="x"))
    flipped = read_directed(odd, source="p2", target="p1", weight="x")
    np.testing.assert_array_equal(read_matrix(flipped.distances), D.T)


@pytest.mark.parametrize(
    ("columns", "said", "match"),
    [
        (("p1", "p2", "x"), {}, "'p1', 'p2', 'x'"),
        (("p1", "p2", "x"), {"source": "p3"}, "source='p3' is not a column.*'p1'"),
        (("p1", "p2", "x"), {"source": "p1"}, "known to be the target"),
        (("source", "target", "n"), {}, "looks like a strength.*values='strength'"),
        (("source", "target", "synapses"), {}, "looks like a strength"),
        (("source", "target", "n_synapses"), {}, "looks like a strength"),
        (("source", "target", "tripCount"), {}, "looks like a strength"),
        (("source", "target", "wins"), {}, "'wins' looks like a strength"),
        (("origin", "destination", "n_migrants"), {}, "looks like a strength"),
        (("from", "to", "Exports"), {}, "looks like a strength"),
        (("source", "target", "probability"), {"weight": "probability"}, "looks like a strength"),
        (("source", "from", "to"), {}, "'source', 'from' could all be the source"),
        (("source", "target", "weight"), {"values": "much"}, "values must be one of"),
        (("source", "target", "weight"), {"weight": "w"}, "weight='w' is not a column"),
    ],
)
def test_what_is_not_known_is_an_error_that_says_what_was_found(columns, said, match):
    with pytest.raises(ValueError, match=match):
        read_directed(dict(zip(columns, EDGES.values(), strict=True)), **said)


def test_two_lengths_are_ambiguous_and_other_columns_are_not():
    both = EDGES | {"distance": [1.0, 1.0, 1.0]}
    with pytest.raises(ValueError, match="any of 'weight', 'distance'"):
        read_directed(both)
    check(read_directed(both, weight="weight"))
    check(read_directed(EDGES | {"year": [2000, 2001, 2002]}))
    indexed = {"Unnamed: 0": [0, 1, 2]} | dict(zip(("u", "v", "x"), EDGES.values(), strict=True))
    check(read_directed(indexed))  # an index that pandas wrote and read
    check(read_directed(dict(zip(("u", "v", "travel_time"), EDGES.values(), strict=True))))


def test_edges_of_one_pair_and_of_a_node_to_itself():
    twice = {
        "source": ["a", "a", "a", "b", "c", "b"],
        "target": ["b", "b", "a", "a", "a", "c"],
        "minutes": [3.0, 2.0, 7.0, 1.0, 4.0, np.inf],
    }
    check(read_directed(twice))
    counts = read_directed(twice | {"minutes": [3, 2, 5, 1, 4, nan]}, values="strength")
    lengths = read_matrix(counts.distances)
    assert lengths[0, 1] == pytest.approx(-np.log(0.5))  # 5 of 10 leave for b, 5 stay
    assert lengths[2, 0] == lengths[1, 0] == 0.0
    visits = {"from": ["a", "a", "a"], "to": ["b", "b", "c"]}  # one row per visit
    lengths = read_matrix(read_directed(visits, values="strength").distances)
    assert lengths[0, 1:] == pytest.approx(-np.log([2 / 3, 1 / 3]))
    hops = read_matrix(read_directed(visits).distances)
    assert hops[0, 1:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("bad", [None, nan, 1.5])
def test_ends_of_edges_that_are_no_nodes(bad):
    with pytest.raises(ValueError, match="Edge 2 has"):
        read_directed({"source": [0.0, bad], "target": [1.0, 2.0]})


def test_numbers_of_nodes_are_sorted_as_numbers():
    edges = {"tail": [10, 9, 2], "head": [9, 2, 10]}
    assert read_directed(edges).names == [2, 9, 10]
    text = {end: [str(node) for node in nodes] for end, nodes in edges.items()}
    assert read_directed(text).names == ["2", "9", "10"]


def test_square_frames_match_columns_to_rows_by_name():
    frame = pd.DataFrame(D, index=NAMES, columns=NAMES)
    check(read_directed(frame))
    check(read_directed(frame[["c", "a", "b"]]))
    check(read_directed(frame.rename(columns=dict(zip(NAMES, range(3), strict=True)))))
    check(read_directed(frame.reset_index(drop=True)))  # rows in the order of the columns
    check(read_directed(pd.DataFrame(D)), None)
    numbered = pd.DataFrame(D)[[2, 0, 1]]
    np.testing.assert_array_equal(read_directed(numbered).distances, D)
    letters = list("stuvw")  # u and v are nodes here
    matrix = pd.DataFrame(np.arange(25.0).reshape(5, 5), columns=letters)
    assert read_directed(matrix).names == letters
    assert read_directed(matrix.set_axis(letters)).names == letters
    with pytest.raises(ValueError, match="'b' is a row and not a column"):
        read_directed(frame.rename(columns={"b": "z"}))
    with pytest.raises(ValueError, match=r"neither square .3 rows, 2 columns. nor an edge list"):
        read_directed(frame[["a", "b"]])
    with pytest.raises(ValueError, match="some rows have the same name"):
        read_directed(frame.set_axis(["a", "a", "b"]))
    with pytest.raises(ValueError, match="several columns of the same name"):
        read_directed(pd.DataFrame(D, index=NAMES, columns=["a", "a", "b"]))


def test_square_frames_of_polars():
    polars = pytest.importorskip("polars")
    columns = dict(zip(NAMES, np.where(np.isnan(D), None, D).T.tolist(), strict=True))
    check(read_directed(polars.DataFrame(columns)))
    named = polars.DataFrame({"place": NAMES} | {name: columns[name] for name in "cab"})
    check(read_directed(named))


def test_frames_keep_missing_values_of_any_kind():
    frame = pd.DataFrame(D, index=NAMES, columns=NAMES)
    check(read_directed(frame.astype("Float64")))
    check(read_directed(frame.astype(object).where(frame.notna(), None)))


def test_graphs_of_networkx():
    nx = pytest.importorskip("networkx")
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(NAMES)
    edges = zip(*EDGES.values(), strict=True)
    graph.add_weighted_edges_from([*edges, ("a", "b", 9.0), ("a", "a", 1.0)])
    check(read_directed(graph))
    for source, target, data in graph.edges(data=True):
        data["length"], data["lanes"] = data.pop("weight"), (source, target)
    check(read_directed(graph))  # the only attribute that is known as a length
    with pytest.raises(ValueError, match="weight='minutes' is not"):
        read_directed(graph, weight="minutes")
    for *_, data in graph.edges(data=True):
        data["time"] = data["length"]
    with pytest.raises(ValueError, match="any of 'length', 'time'"):
        read_directed(graph)
    lone = nx.DiGraph([("a", "b"), ("b", "c")])
    assert read_matrix(read_directed(lone).distances)[0, 1] == 1
    nx.set_edge_attributes(lone, 3, "synapses")
    with pytest.raises(ValueError, match="strength"):
        read_directed(lone)


def test_graphs_of_igraph():
    igraph = pytest.importorskip("igraph")
    ends = zip(EDGES["source"], EDGES["target"], EDGES["weight"], strict=True)
    named = igraph.Graph.TupleList(ends, directed=True, edge_attrs=["weight"])
    check(read_directed(named))
    numbered = igraph.Graph(3, [(0, 1), (1, 0), (2, 0)], directed=True)
    numbered.es["weight"] = EDGES["weight"]
    check(read_directed(numbered), [0, 1, 2])


def test_cells_of_an_anndata():
    anndata = pytest.importorskip("anndata")
    T = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
    adata = anndata.AnnData(np.zeros((3, 1), dtype=np.float32))
    adata.obs_names = NAMES
    adata.obsp["T_fwd"] = scipy.sparse.csr_matrix(T)
    found, by_name = read_directed(adata), read_directed(T, values="transitions")
    assert found.names == NAMES
    np.testing.assert_array_equal(read_matrix(found.distances), read_matrix(by_name.distances))


def test_a_transition_matrix_is_one_only_by_name():
    T = np.array([[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_array_equal(read_directed(T).distances, T)
    lengths = read_matrix(read_directed(T, values="transitions").distances)
    assert lengths == pytest.approx(np.array([[0, -np.log(0.5)], [0, 0]]))
    assert read_matrix(read_directed(7 * T, values="strength").distances) == pytest.approx(lengths)
    with pytest.raises(ValueError, match="row 0 sums to 7"):
        read_directed(7 * T, values="transitions")
    with pytest.raises(ValueError, match="names a column"):
        read_directed(T, source="from")


def test_finite_distances_that_would_overflow_are_refused():
    check_range(np.array([1e149, np.inf, nan]))
    for large in (1e200, np.longdouble("1e400")):
        with pytest.raises(ValueError, match="cannot hold: use another unit"):
            check_range(np.array([large, np.inf]))
    with pytest.raises(ValueError, match="takes for 0"):
        check_range(np.array([0.0, 1e-300]))


def test_missing_pairs_get_one_mark():
    dense = np.array([[nan, 1, np.inf], [nan, 0, 2], [3, 4, np.inf]])
    np.testing.assert_array_equal(
        fill_missing(dense, np.inf), [[0, 1, np.inf], [np.inf, 0, 2], [3, 4, 0]]
    )
    sparse = scipy.sparse.csr_array(
        (np.array([1.0, nan, np.inf, 0.0]), np.array([1, 2, 0, 2]), np.array([0, 2, 4, 4]))
    )
    kept = fill_missing(scipy.sparse.csr_array(sparse, shape=(3, 3))).tocoo()
    assert (kept.coords[0].tolist(), kept.coords[1].tolist()) == ([0, 1], [1, 2])
    with pytest.raises(ValueError, match="no known distance"):
        fill_missing(np.full((3, 3), nan))


def test_features_pass_and_directed_data_needs_precomputed():
    nx = pytest.importorskip("networkx")
    X = np.eye(3)
    assert as_matrix(X, precomputed=False).X is X
    wind = pd.DataFrame({"u": [1.0, 2.0], "v": [2.0, 3.0]})  # not every u and v are edges
    assert as_matrix(wind, precomputed=False).X is wind
    doubled = pd.DataFrame(X, columns=["a", "a", "b"])
    assert as_matrix(doubled, precomputed=False).X is doubled
    for data, words in (
        (nx.DiGraph([(0, 1)]), "a graph .networkx DiGraph."),
        (pd.DataFrame(EDGES), "an edge list with the columns source, target, weight"),
        (read_directed(EDGES), "directed data"),
    ):
        with pytest.raises(ValueError, match=f"{words}.*metric='precomputed'"):
            as_matrix(data, precomputed=False)


def test_a_list_of_edges_is_read():
    edges = [("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 1.0)]
    found = as_matrix(edges, precomputed=True)
    assert found.names == NAMES
    assert found.X.toarray().tolist() == [[0, 1, 0], [0, 0, 2], [1, 0, 0]]
    with pytest.raises(ValueError, match="needs metric='precomputed'"):
        as_matrix(edges, precomputed=False)


def test_a_square_frame_that_pandas_wrote_and_read(tmp_path):
    """With whole numbers as names it was refused, or had one point more."""
    frame = pd.DataFrame(D, index=[3, 1, 2], columns=[3, 1, 2])
    frame.to_csv(tmp_path / "square.csv")
    found = read_directed(pd.read_csv(tmp_path / "square.csv"))
    assert found.names == ["3", "1", "2"]
    np.testing.assert_array_equal(read_matrix(found.distances), D)


def test_data_that_is_not_square_is_refused():
    for values in (None, "strength"):
        with pytest.raises(ValueError, match="square"):
            FinslerUMAP(metric="precomputed").fit(read_directed(np.ones((20, 7)), values=values))


def test_errors_name_the_call_that_has_the_keyword():
    """They said weight='minutes', and fit has no such keyword."""
    columns = {"from": ["a"], "to": ["b"], "minutes": [1.0], "km": [2.0]}
    with pytest.raises(ValueError, match=r"read_directed\(data, weight='minutes'\)"):
        as_matrix(columns, precomputed=True)


def test_only_plain_words_are_ends():
    assert find_ends(["from", "from_id", "to", "to_id"]) == ("from", "to")
    assert find_ends(["start", "end", "x"]) is None
    for source, target in (("tail", "head"), ("Pre", "Post"), ("origin", "destination")):
        assert find_ends([target, "x", source]) == (source, target)


def test_the_gradient_share_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    n = 30
    full = rng.random((n, n))
    some = np.where(rng.random((n, n)) < 0.5, full, nan)
    for data in (full, some, scipy.sparse.csr_array(np.nan_to_num(some))):
        dense = data.toarray() if scipy.sparse.issparse(data) else data
        dense = np.where(dense == 0, nan, dense)
        i, j = np.nonzero(np.triu(np.isfinite(dense) & np.isfinite(dense.T), 1))
        skew = dense[i, j] - dense[j, i]
        incidence = np.zeros((len(i), n))
        incidence[np.arange(len(i)), i], incidence[np.arange(len(i)), j] = -1, 1
        rest = skew - incidence @ np.linalg.lstsq(incidence, skew, rcond=None)[0]
        assert gradient_share(data) == pytest.approx(1 - rest @ rest / (skew @ skew), abs=1e-6)
    assert np.isnan(gradient_share(full + full.T))
    assert np.isnan(gradient_share(np.triu(np.where(full > 0, full, nan)) + np.tril(full * nan)))


def test_separate_sequences_are_refused_with_the_way_out():
    ends = (["a", "b", "c", "d"], ["b", "c", "d", "a"], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"list\(zip\(sources, targets, lengths\)\)"):
        read_directed(ends)
    assert read_directed(list(zip(*ends, strict=True))).names == ["a", "b", "c", "d"]
    assert read_directed([[0.0, 1.0], [2.0, 0.0]]).distances.shape == (2, 2)


@pytest.mark.parametrize("counts", [1, 5])
@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
def test_a_dense_adjacency_matrix_is_not_taken_for_distances(estimator, counts):
    """Absent edges were the shortest distances, and the order was turned over: "shows it"."""
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((30, 30)) < 0.2, 1) * rng.integers(1, counts + 1, (30, 30))
    for data in (edges, edges.astype(float), edges.tolist(), pd.DataFrame(edges)):
        with pytest.raises(ValueError, match="0 means that there is no edge"):
            estimator(metric="precomputed").fit(data)
        with pytest.raises(ValueError, match="0 means that there is no edge"):
            potential(data)
    said = read_directed(edges, values="cost")
    assert said.distances is edges
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator(metric="precomputed").fit(said)
    assert (np.diff(potential(scipy.sparse.csr_array(edges)).values) < 0).mean() > 0.5
    twins = np.zeros((8, 8))
    twins[0, 1:] = twins[1:, 0] = 1.0
    assert read_directed(twins).distances is twins  # seven points in one place


@pytest.mark.parametrize("own", [0.0, nan])
def test_climbs_are_distances_whatever_is_on_the_diagonal(own):
    """Missing ones were counted among the known pairs: half of them are 0 here, and not more."""
    level = np.random.default_rng(0).normal(size=8)
    climbs = np.maximum(0, level - level[:, None])
    np.fill_diagonal(climbs, own)
    assert read_directed(climbs).distances is climbs
    few = np.full((4, 4), nan)
    few[[0, 1], [1, 0]] = 0.0, 1.0
    assert read_directed(few).distances is few


def test_tuples_of_numbered_nodes_are_edges():
    found = read_directed([(2, 0), (0, 1), (10, 0)])
    assert found.names == [0, 1, 2, 10]
    assert found.distances.nnz == 3
    triples = read_directed([(0, 1, 2.0), (1, 2, 3.0), (2, 0, 4.0)])
    assert triples.distances[1, 2] == 3.0
    matrix = [(0, 1, 2.0), (1, 0, 3.0), (2, 4, 0.0)]
    np.testing.assert_array_equal(read_directed(matrix).distances, matrix)
    assert potential([(0, 1), (1, 2), (2, 3)]).values.tolist() == [1.5, 0.5, -0.5, -1.5]
    model = FinslerUMAP(metric="precomputed", n_epochs=5).fit([(0, 1), (1, 2), (2, 3), (3, 4)])
    assert model.node_names_.tolist() == [0, 1, 2, 3, 4]


def test_missing_cells_of_edge_lists_are_said_to_be_missing():
    ends = {"source": pd.array(["a", None, "b"], dtype="string"), "target": ["b", "a", "a"]}
    with pytest.raises(ValueError, match="Edge 2 has"):
        read_directed(pd.DataFrame(ends))
    ends["source"] = pd.to_datetime(["2020-01-01", None, "2020-01-02"])
    with pytest.raises(ValueError, match="Edge 2 has"):
        read_directed(pd.DataFrame(ends))
    for gone in (None, nan):
        with pytest.raises(ValueError, match="Edge 1 has"):
            read_directed([("a", gone), ("b", "c")])
    weighted = {"source": [*"abc"], "target": [*"bca"], "weight": pd.array([1.0, None, 2.0])}
    assert read_directed(pd.DataFrame(weighted)).distances.nnz == 2


@pytest.mark.parametrize(
    ("data", "values", "match"),
    [
        ([["a", "b"], ["b", "c"]], None, "must be numbers.*tuples"),
        (np.array([[0, "x"], [1, 0]], dtype=object), None, "must be numbers"),
        (np.array([[0, 1j], [1, 0]]), None, "must be numbers"),
        (scipy.sparse.csr_array([[0, np.inf], [1.0, 0]]), "strength", "Strengths must be numbers"),
        (np.array([[0, 1e200], [1.0, 0]]), "strength", "use another unit"),
    ],
)
def test_what_is_no_number_is_refused(data, values, match):
    with pytest.raises(ValueError, match=match):
        read_directed(data, values=values)


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        (np.array([[0, -1.0], [1, 0]]), {}, "not be negative, got -1"),
        (np.array([[0, -np.inf], [1, 0]]), {}, "inf"),
        (scipy.sparse.csr_array([[0, -1.0], [1, 0]]), {}, "not be negative"),
        (np.array([[1.0, 2.0], [1, 0]]), {}, "to itself must be 0"),
        ([("a", "b")], {"ridge": -1.0}, "ridge must be"),
        ([("a", "b")], {"ridge": nan}, "ridge must be"),
        ([("a", "b")], {"ridge": "best"}, "ridge must be"),
    ],
)
def test_a_potential_is_of_checked_data(data, options, match):
    with pytest.raises(ValueError, match=match):
        potential(data, **options)


def test_a_graph_without_nodes_is_refused():
    nx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="neither nodes nor edges"):
        read_directed(nx.DiGraph())
