"""The same table in every kind of file gives the same embedding, bit for bit."""

import csv
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finsler_ext import FinslerUMAP
from finsler_ext.cli import main
from tests.strategies import tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EXAMPLES = int(os.environ.get("FINSLER_EXAMPLES", "0"))

FORMATS = ["csv", "quoted csv", "tsv", "semicolons", "no header", "bom", "crlf"]
FORMATS += ["npy", "npz", "sparse npz"]
# What a column, a row or a label may be called.
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=12
).map(lambda name: "n" + " ".join(name.split()))


def write(folder, X, form, names, label):
    """The file's name, and the options that are needed to read it."""
    if form == "npy":
        np.save(folder / "a.npy", X)
        return ["a.npy"]
    if form == "npz":
        np.savez(folder / "a.npz", X=X, kind=np.array(label))
        return ["a.npz", "--label", "kind"]
    if form == "sparse npz":
        scipy.sparse.save_npz(folder / "a.npz", scipy.sparse.csr_matrix(X))
        return ["a.npz"]
    name = "a.tsv" if form == "tsv" else "a.csv"
    with open(
        folder / name, "w", newline="", encoding="utf-8-sig" if form == "bom" else "utf-8"
    ) as file:
        writer = csv.writer(
            file,
            delimiter={"tsv": "\t", "semicolons": ";"}.get(form, ","),
            quoting=csv.QUOTE_ALL if form in ("quoted csv", "semicolons") else csv.QUOTE_MINIMAL,
            lineterminator="\r\n" if form == "crlf" else "\n",
        )
        if form != "no header":
            writer.writerow([*names, "the label"])
        writer.writerows([*row, kind] for row, kind in zip(X.tolist(), label, strict=True))
    if form == "no header":
        return [name, "--no-header", "--label", str(X.shape[1] + 1)]
    return [name, "--header", "--label", "the label"]


@settings(
    max_examples=EXAMPLES or 20,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    tables(max_rows=20, dtypes=("f8", "f4", "i4"), offsets=(0.0, 1e8)),
    st.sampled_from(FORMATS),
    st.data(),
)
def test_every_kind_of_file(tmp_path_factory, X, form, data):
    folder = tmp_path_factory.mktemp("files")
    if not (X.std(axis=0) > 0).any():
        return
    names = data.draw(st.lists(NAMES, min_size=X.shape[1], max_size=X.shape[1]))
    label = data.draw(st.lists(NAMES, min_size=len(X), max_size=len(X)))
    arguments = write(folder, X, form, names, label)
    before = os.getcwd()
    os.chdir(folder)
    try:
        ending = data.draw(st.sampled_from(["csv", "npy"]))
        assert main(["embed", *arguments, "-o", f"o.{ending}"]) == 0
    finally:
        os.chdir(before)
    sparse = form == "sparse npz"
    want = FinslerUMAP(random_state=0).fit_transform(scipy.sparse.csr_matrix(X) if sparse else X)
    if ending == "npy":
        assert np.array_equal(np.load(folder / "o.npy"), want, equal_nan=True)
        return
    found = pd.read_csv(folder / "o.csv", dtype=str, keep_default_na=False, encoding="utf-8")
    got = found[["x", "y", "height"]].replace("nan", "NaN").astype(np.float32).to_numpy()
    assert np.array_equal(got, want, equal_nan=True)
    if "--label" in arguments:
        # letters that a spreadsheet takes for a formula cannot come first: names begin with n
        assert found.iloc[:, 1].tolist() == label
