"""The paper's numbers are whole, and failed runs are found where they are known to be."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.paper.published import LABEL_SCORES, OURS, SIZES, failed_runs, printed, read
from benchmarks.paper.published.__main__ import main
from benchmarks.paper.published.chance import blob, unrelated
from benchmarks.paper.published.failed_runs import count_failed, good_and_failed

rng = np.random.default_rng(0)

# ------------------------------------------------------------------ the transcript


def test_every_table_is_whole():
    """16 sets with two rows, 6 with two, 5 sets × 4 methods × 2 classifiers, and so on."""
    counts = read().groupby("table").size().to_dict()
    assert counts == {
        "umap": 16 * 2 * 10,
        "tsne": 6 * 2 * 10,
        "supervised": 5 * 4 * 2,
        "dimension": 3 * 4 * 2 * 10,
        "drift_umap": 16 * 5 * 10,
        "drift_tsne": 6 * 5 * 10,
        "time": 5,
    }
    assert not read().duplicated(["table", "data", "method", "drift", "dimension", "score"]).any()
    assert read()["mean"].notna().all()
    assert set(OURS) < set(SIZES) == set(read()[read().table == "umap"].data)


@pytest.mark.parametrize(
    ("place", "mean", "sd"),
    [
        (("umap", "Imagenette", "umap", "ami"), 0.750, 0.375),
        (("umap", "Imagenette", "finsler_umap", "fmi"), 0.867, 0.255),
        (("umap", "Imagenet", "umap", "calinski_harabasz"), 7315700, 51432),
        (("drift_umap", "GTSRB", "finsler_umap", "ari", 0.1), 0.201, 0.069),
        (("drift_umap", "DTD", "finsler_umap", "calinski_harabasz", 0.5), 4364, 816),
        (("dimension", "OxfordFlowers102", "umap", "davies_bouldin", None, 50), 0.888, 0.019),
    ],
)
def test_numbers_read_by_hand(place, mean, sd):
    assert printed(*place) == (mean, sd)


@pytest.mark.parametrize(
    ("place", "mean"),
    [
        (("tsne", "OxfordFlowers102", "finsler_tsne", "fmi"), 0.392),
        (("drift_tsne", "Iris", "finsler_tsne", "silhouette", 0.01), 0.670),
        (("supervised", "OxfordFlowers102", "finsler_tsne", "knn5"), 0.62),
        (("supervised", "Caltech101", "finsler_tsne", "linear"), 0.76),
        (("time", "Imagenette", "finsler_tsne", "seconds"), 9700),
    ],
)
def test_numbers_without_a_deviation(place, mean):
    found = printed(*place)
    assert found.mean == mean
    assert np.isnan(found.sd)


def test_what_is_not_printed_is_nan():
    assert np.isnan(printed("umap", "Imagenette", "tsne", "ami").mean)


def by_row(table):
    found = read()[read().table == table]
    index = ["data", "method", "drift", "dimension"]
    return found.fillna({"drift": -1.0}).pivot(index=index, columns="score", values="mean")


def test_nmi_is_the_v_measure_in_all_rows_but_one():
    """Both are the same quantity; one row differs in the last digit."""
    rows = pd.concat([by_row(t) for t in ("umap", "tsne", "dimension", "drift_umap", "drift_tsne")])
    differ = rows[(rows.nmi - rows.v_measure).abs() > 1e-9]
    assert [key[:2] + key[3:] for key in differ.index] == [("Imagenette", "umap", 5)]
    assert (differ.nmi - differ.v_measure).abs().max() < 0.0011


@pytest.mark.parametrize("family", ["umap", "tsne"])
def test_main_tables_are_the_drifts_of_highest_ami(family):
    """But for two cells of Caltech256, which the main table has from their neighbours."""
    main_table, drifts = by_row(family), by_row(f"drift_{family}")
    differ = []
    for data in dict.fromkeys(main_table.index.get_level_values("data")):
        ours = drifts.loc[data, f"finsler_{family}"]
        tied = ours[ours.ami == ours.ami.max()]
        row = main_table.loc[data, f"finsler_{family}"].iloc[0]
        wrong = min(([s for s in row.index if row[s] != r[s]] for _, r in tied.iterrows()), key=len)
        differ += [(data, score) for score in wrong]
        assert main_table.loc[data, family].iloc[0].equals(drifts.loc[data, family].iloc[0])
    expected = [("Caltech256", "davies_bouldin"), ("Caltech256", "silhouette")]
    assert differ == (expected if family == "umap" else [])


# ------------------------------------------------------------------ failed runs


@pytest.mark.parametrize("failed", [0, 1, 2, 3])
@pytest.mark.parametrize("level", [0.4, 0.9])
def test_known_numbers_of_failed_runs_are_found(failed, level):
    runs = level + 0.01 * rng.normal(size=10)
    runs[:failed] = 0.005 * rng.normal(size=failed)
    mean, sd = round(runs.mean(), 3), round(runs.std(), 3)
    assert count_failed(mean, sd) == failed
    if failed:
        good, bad = good_and_failed(mean, sd, failed)
        assert good == pytest.approx(runs[failed:].mean(), abs=0.01)
        assert bad == pytest.approx(0, abs=0.02)


def test_a_sample_deviation_is_told_apart():
    runs = np.array([0.0, 0.0] + [0.9] * 8)
    mean, sd = runs.mean(), runs.std(ddof=1)
    assert count_failed(mean, sd, ddof=1) == 2
    assert count_failed(mean, sd, ddof=0) is None


def test_runs_that_are_merely_spread_out_are_not_failed():
    """Between 0.2 and 0.8: no number of runs at 0 has such a mean and deviation."""
    runs = np.linspace(0.2, 0.8, 10)
    assert count_failed(runs.mean(), runs.std()) is None


def test_scores_of_which_less_is_better():
    runs = np.array([0.8] * 2 + [0.5] * 8)
    good, bad = good_and_failed(runs.mean(), runs.std(), 2, higher=False)
    assert (good, bad) == (pytest.approx(0.5), pytest.approx(0.8))


def test_failed_runs_of_the_paper():
    rows = failed_runs.rows()
    assert rows.failed.notna().all(), "every row is explained"
    drifts = rows[rows.table == "drift_umap"]
    count = drifts.groupby("method").failed.sum().to_dict()
    assert count == {"umap": 17, "finsler_umap": 32}
    higher = rows[(rows.table == "dimension") & (rows.dimension > 2)]
    assert len(higher) == 18
    assert higher.failed.sum() == 0
    # Population deviations put the AMI of failed runs at chance, sample deviations do not.
    assert np.median(np.abs(failed_runs.read_as(0))) < 0.002
    assert failed_runs.read_as(1).min() > 0.01


def test_what_is_left_of_the_gain():
    table = failed_runs.gains().set_index("data")
    assert (table.printed > 0).all()
    assert table.printed.mean() == pytest.approx(0.0765, abs=1e-4)
    assert table.same_drift.mean() == pytest.approx(0.0096, abs=1e-4)
    assert (table.same_drift > 0).sum() == 12
    assert table.loc["Imagenette", "good_umap"] == pytest.approx(0.9375)
    hit = table[table.failed_umap > 0]
    assert (hit.failed_chosen == hit.failed_drifts.map(min)).all()
    untouched = table[table.failed_umap + table.failed_drifts.map(sum) == 0]
    assert np.allclose(untouched.printed, untouched.same_drift)


def test_failed_runs_score_as_unrelated_labels_do():
    found = failed_runs.solved()
    found = found[(found.table == "drift_umap") & (found.method == "umap")]
    for data in ("CIFAR100", "DTD", "OxfordFlowers102", "Imagenette"):
        failed = found[found.data == data].set_index("score").bad
        nmi, fmi = unrelated(*SIZES[data])
        assert failed["nmi"] == pytest.approx(nmi, abs=0.02)
        assert failed["fmi"] == pytest.approx(fmi, abs=0.01)


def test_failed_runs_of_cifar10_have_no_clusters():
    """UMAP as a disc, Finsler UMAP between a disc and a ball."""
    found = failed_runs.solved()
    found = found[(found.table == "drift_umap") & (found.data == "CIFAR10")]
    failed = found.groupby(["method", "score"]).bad.mean()
    disc, ball = blob(2, 10), blob(3, 10)
    assert failed["umap", "silhouette"] == pytest.approx(disc.silhouette, abs=0.02)
    assert failed["umap", "davies_bouldin"] == pytest.approx(disc.davies_bouldin, abs=0.02)
    assert ball.silhouette < failed["finsler_umap", "silhouette"] < disc.silhouette
    assert disc.davies_bouldin < failed["finsler_umap", "davies_bouldin"] < ball.davies_bouldin


@pytest.mark.parametrize("part", ["summary", "rows"])
def test_the_command(part, capsys):
    main([part])
    text = capsys.readouterr().out
    assert "Imagenette" in text
    assert ("12 of 16" in text) == (part == "summary")


def test_scores_are_those_of_the_ledgers():
    from benchmarks.paper.scores import SCORES

    assert set(LABEL_SCORES) <= set(SCORES)
    assert set(read()[read().table != "time"].score) <= set(SCORES)
