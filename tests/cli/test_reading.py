"""How text files are read: header or row, row names, labels; and that nothing is lost."""

import csv

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finsler_ext.cli import main, tables
from finsler_ext.cli.messages import UsageError
from finsler_ext.cli.options import parser
from finsler_ext.cli.tables import colors_of, label_values
from finsler_ext.cli.text import has_header, is_number

ROWS = np.random.default_rng(0).normal(size=(60, 4)).round(3)


@pytest.fixture
def embed(run):
    """Run the command in an empty folder and return what it printed."""

    def embedded(*arguments, code=0):
        printed = run("embed", *arguments, code=code)
        return printed.err if code else printed.out

    return embedded


def read_text(path):
    options = parser().parse_args(["embed", str(path)])
    return tables._text(path, options, None)


def write(path, rows, *before):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*before, *rows])


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (["NA", 1, 2, 3], "line 1 (NA, 1, 2, 3) may be a header or a row: its numbers rise"),
        (["", 1, 2, 3], "may be a header or a row"),
        ([0, 1, 2, 3], "may be a header or a row"),
        ([400, 405, 410, 415], "may be a header or a row"),
        ([4000, 3998.5, 3997, 3995.5], "its numbers fall in even steps"),
        ([397.2, 400.1, 405.9, 410.0], "none is in the range of its column"),
        (["NA", 3, 1, 2], "column '1' has a missing value in line 1"),
        (["", 3, 1, 2], "if line 1 is a header, say --header"),
    ],
)
def test_no_first_row_is_lost_and_no_header_embedded(first, message, embed, tmp_path):
    write(tmp_path / "a.csv", ROWS.tolist(), first)
    assert message in embed("a.csv", code=2)
    assert not (tmp_path / "a_finsler.csv").exists()


def test_the_user_decides(embed, tmp_path):
    write(tmp_path / "a.csv", ROWS.tolist(), [400, 405, 410, 415])
    said = embed("a.csv", "--no-header", "-o", "rows.csv")
    assert "Read a.csv: 61 rows, 4 columns, no header. Embedded 61 rows" in said
    assert len(table(tmp_path / "rows.csv")) == 62
    said = embed("a.csv", "--header", "--drop", "410", "-o", "named.csv")
    assert "Read a.csv: 60 rows, 3 columns, header." in said
    assert len(table(tmp_path / "named.csv")) == 61


def test_a_row_with_text_is_no_header(embed, tmp_path):
    """As in the files of the UCI repository."""
    kinds = [[*row, f"kind {i % 3}"] for i, row in enumerate(ROWS.tolist())]
    write(tmp_path / "a.data.csv", kinds)
    assert "text only where the lines below have text, too" in embed("a.data.csv", code=2)
    embed("a.data.csv", "--no-header", "--label", "5", "-o", "o.csv")
    assert [row[1] for row in table(tmp_path / "o.csv")] == ["5", *(row[4] for row in kinds)]


def test_rows_of_missing_values_are_rows(embed, tmp_path):
    rows = ROWS.tolist()
    rows[7] = [""] * 4
    write(tmp_path / "a.csv", rows, "abcd")
    assert "column 'a' has a missing value in line 9 (rows with missing values: 1)" in embed(
        "a.csv", code=2
    )
    said = embed("a.csv", "--drop-missing", "-o", "o.csv")
    assert "60 rows, 4 columns, header, 1 with missing values left out. Embedded 59 rows" in said
    numbers = [int(row[0]) for row in table(tmp_path / "o.csv")[1:]]
    assert numbers == [i for i in range(60) if i != 7]


def test_blank_lines_are_skipped(embed, tmp_path):
    lines = "\n\n  \n".join(",".join(map(str, row)) for row in ROWS.tolist())
    (tmp_path / "a.csv").write_text(f"\n{lines}\n\n")
    assert "60 rows, 4 columns, no header" in embed("a.csv", "-o", "o.csv")


def test_an_empty_cell_of_a_single_column_is_missing(tmp_path):
    (tmp_path / "a.csv").write_text('a\n1\n""\n3\n2\n')
    values = read_text(tmp_path / "a.csv").X
    assert np.array_equal(values[:, 0], [1, np.nan, 3, 2], equal_nan=True)


def test_a_column_called_no_header_does_not_make_it_so(embed, tmp_path):
    """The words of the reading were asked, and row names are among them."""
    named = [[f"r{i}", *row] for i, row in enumerate(ROWS.tolist())]
    named[0][2] = ""
    write(tmp_path / "a.csv", named, ["no header", *"abcd"])
    said = embed("a.csv", "--index", "no header", code=2)
    assert "column 'b' has a missing value in line 2" in said
    assert "--header" not in said


def test_what_names_the_rows(embed, tmp_path):
    named = [[f"r{i}", *row] for i, row in enumerate(ROWS.tolist())]
    write(tmp_path / "pandas.csv", named, ["", *"abcd"])
    write(tmp_path / "named.csv", named, ["id", *"abcd"])
    assert "header, rows named by column 1." in embed("pandas.csv", "-o", "o.csv")
    assert [row[0] for row in table(tmp_path / "o.csv")][1:3] == ["r0", "r1"]
    assert "rows named by column id." in embed("named.csv", "--index", "id", "-o", "p.csv")
    assert table(tmp_path / "p.csv") == table(tmp_path / "o.csv")
    assert "no column 'name'" in embed("named.csv", "--index", "name", code=2)
    np.save(tmp_path / "a.npy", ROWS)
    assert "--index names a column" in embed("a.npy", "--index", "1", code=2)
    assert "--header and --no-header are for" in embed("a.npy", "--header", code=2)
    assert "no meaning with --directed" in embed("named.csv", "--directed", "--index", "id", code=2)


def test_an_index_in_parquet(embed, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    ids = [2**60 + i for i in range(59)] + [None]
    columns = {"id": ids, "a": ROWS[:, 0], "b": ROWS[:, 1]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    embed("a.parquet", "--index", "id", "-o", "o.csv")
    embed("a.parquet", "--label", "id", "-o", "p.csv")
    want = ["" if i is None else str(i) for i in ids]
    assert [row[0] for row in table(tmp_path / "o.csv")[1:]] == want
    assert [row[1] for row in table(tmp_path / "p.csv")[1:]] == want


def test_directed_data_of_lists_or_of_nothing(embed, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    lists = pyarrow.table({"a": [[1, 2]] * 9, "b": range(9)})
    for table_ in (lists, pyarrow.table({})):
        parquet.write_table(table_, tmp_path / "a.parquet")
        assert "a.parquet" in embed("a.parquet", "--directed", code=2)


@pytest.mark.parametrize("cell", ["2019_12", "1_0", "1__0"])
def test_underscores_are_no_digits(cell, embed, tmp_path):
    assert not is_number(cell)
    rows = [[*row, cell] for row in ROWS.tolist()]
    write(tmp_path / "a.csv", rows, [*"abcd", "month"])
    assert f"column 'month' is not numeric ('{cell}' in line 2)" in embed("a.csv", code=2)


LABELS = {
    "zeros": ["000", "001", "010", "0"],
    "19 digits": ["1234567890123456789", "1234567890123456788"],
    "26 digits": ["12345678901234567890123456", "12345678901234567890123457"],
    "dates": ["2019_12", "2020_01"],
    "numbers": ["1", "2.50", "1e3", "-7"],
    "gaps": ["a", "", "NA", "b "],
    "words": ["nan", "inf", "None", "true"],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_written_as_they_were_read(labels, ending, embed, tmp_path):
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    cells = [labels[i % len(labels)] for i in range(60)]
    rows = [[*row, cell] for row, cell in zip(ROWS.tolist(), cells, strict=True)]
    write(tmp_path / "a.csv", rows, [*"abcd", "kind"])
    embed("a.csv", "--header", "--label", "kind", "-o", f"o.{ending}", "--plot", "o.html")
    want = [cell.strip() for cell in cells]
    if ending == "csv":
        assert [row[1] for row in table(tmp_path / "o.csv")[1:]] == want
    else:
        assert parquet.read_table(tmp_path / "o.parquet")["kind"].to_pylist() == want


def test_only_what_is_written_as_a_number_is_coloured_as_one():
    def kind(*texts):
        return colors_of(np.array(texts, dtype=object)).dtype.kind

    assert kind("1", "2", "-3") == "i"
    assert kind("1", "2.5") == "f"
    assert kind("000", "001") == "U"
    assert kind("1234567890123456789", "1234567890123456788") == "U"
    assert colors_of(np.array(["", "a"], dtype=object)).tolist() == ["(none)", "a"]
    assert label_values(np.array([1.0, 2.0])).tolist() == [1, 2]
    assert label_values(np.array([1e300, 2.0])).dtype == float
    assert label_values(np.array([b"a", b"\xff"])).tolist() == ["a", "�"]


@pytest.mark.parametrize("name", ["row", "x", "y", "height"])
def test_a_label_with_the_name_of_a_coordinate(name, embed, tmp_path, capsys):
    rows = [[*row, f"k{i % 2}"] for i, row in enumerate(ROWS.tolist())]
    write(tmp_path / "a.csv", rows, [*"abcd", name])
    assert main(["embed", "a.csv", "--label", name, "-o", "o.csv"]) == 0
    assert f"the label {name!r} is column 'label_{name}'" in capsys.readouterr().err
    found = table(tmp_path / "o.csv")
    assert found[0] == ["row", f"label_{name}", "x", "y", "height"]
    assert found[2][1] == "k1"


def test_a_matrix_of_very_many_columns(embed, tmp_path):
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 2**40, size=240))
    X = scipy.sparse.csr_matrix(
        (rng.normal(size=240), columns, np.arange(0, 241, 4)), shape=(60, 2**40)
    )
    scipy.sparse.save_npz(tmp_path / "wide.npz", X)
    assert "Embedded 60 rows of 1099511627776 columns" in embed("wide.npz", "-o", "o.npy")


CELLS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "NA", "?", "a", "x y", "2019_12", "1e5", "007", "Na"]),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 5).flatmap(
        lambda k: st.lists(st.lists(CELLS, min_size=k, max_size=k), min_size=1, max_size=8)
    )
)
def test_every_line_is_a_row_or_the_header(tmp_path_factory, lines):
    """Whatever the file: as many rows as lines, less the header, or one of our complaints."""
    path = tmp_path_factory.mktemp("t") / "a.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    try:
        read = read_text(path)
    except UsageError:
        return
    header = has_header(path, [c.strip() for c in lines[0]], lines[1:])
    assert len(read.X) == len(read.rows) == len(lines) - header
    assert read.lines.tolist() == list(range(1 + header, len(lines) + 1))
    body = lines[header:]
    offset = 0 if isinstance(read.rows[0], int) else 1
    for row, cells in zip(read.X, body, strict=True):
        for value, cell in zip(row, cells[offset:], strict=True):
            assert np.isnan(value) if cell in ("", "NA", "?", "Na") else value == float(cell)
