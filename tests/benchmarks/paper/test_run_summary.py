"""Statistics of runs against cases worked out by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest

from benchmarks.ledger import FAILED, FIELDS
from benchmarks.summary import Difference, difference, failures, mean_difference, summary, values


def by_seed(*numbers):
    return pd.Series(numbers, index=pd.RangeIndex(len(numbers), name="seed"), dtype=float)


def table(*rows):
    return pd.DataFrame(rows, columns=list(FIELDS))


def test_median_and_interval_of_three_pairs():
    gap = difference(by_seed(1.0, 3.0, 7.0), by_seed(0.0, 1.0, 2.0))
    # gaps 1, 2, 5: of the 27 resamples 7 have the median 1 and 7 the median 5, more than 2.5 %
    medians = [np.median(draw) for draw in itertools.product((1, 2, 5), repeat=3)]
    assert min(medians.count(1), medians.count(5)) / 27 > 0.025
    assert gap == (2.0, 1.0, 5.0, 3)


def test_seeds_are_paired_by_their_number():
    ours = pd.Series([5.0, 3.0, 1.0], index=[2, 1, 0])
    theirs = pd.Series([0.0, 1.0, 9.0], index=[0, 1, 7])
    gap = difference(ours, theirs)
    assert (gap.median, gap.pairs) == (1.5, 2)


def test_a_method_that_runs_once_is_paired_with_every_seed():
    many, once = by_seed(1.0, 2.0, 4.0), by_seed(1.0)
    assert difference(many, once, once=True).median == 1.0
    assert difference(many, once, once=True).pairs == 3
    assert difference(once, many, once=True).median == -1.0


def test_a_method_that_has_run_once_so_far_is_one_pair():
    many, unfinished = by_seed(1.0, 2.0, 4.0), by_seed(1.0)
    assert difference(many, unfinished).pairs == 1
    assert difference(unfinished, many).median == 0.0


def test_one_pair_has_no_interval():
    gap = difference(by_seed(3.0), by_seed(1.0))
    assert (gap.median, gap.pairs) == (2.0, 1)
    assert np.isnan([gap.low, gap.high]).all()
    assert difference(by_seed(), by_seed(1.0)).pairs == 0


def test_a_constant_difference_has_an_interval_without_width():
    assert difference(by_seed(2.0, 3.0, 4.0), by_seed(1.0, 2.0, 3.0)) == (1.0, 1.0, 1.0, 3)


def test_the_interval_covers_a_known_shift():
    rng = np.random.default_rng(0)
    shift, covered = 0.3, 0
    for _ in range(20):
        noise, own = rng.normal(size=(2, 30))
        gap = difference(by_seed(*(noise + shift + 0.1 * own)), by_seed(*noise))
        covered += gap.low <= shift <= gap.high
    assert covered >= 16  # 95 % of 20 are 19; fewer than 16 have a probability of 0.3 %


def test_failed_runs_are_named_and_not_averaged_in():
    runs = table(
        ("iris", "umap_2d", 0, "ami", 0.5, np.nan),
        ("iris", "umap_2d", 1, "ami", 0.7, np.nan),
        ("iris", "umap_2d", 2, FAILED, 1.0, "degenerate: all points coincide"),
    )
    (found,) = summary(runs).itertuples()
    assert (found.score, found.count) == ("ami", 2)
    assert (found.mean, found.median) == pytest.approx((0.6, 0.6))
    assert found.std == pytest.approx(np.std([0.5, 0.7], ddof=1))
    (lost,) = failures(runs).itertuples(index=False)
    assert tuple(lost) == ("iris", "umap_2d", 2, "degenerate: all points coincide")
    assert list(values(runs, "iris", "umap_2d", "ami").index) == [0, 1]


def test_a_run_that_stands_twice_counts_once():
    line = ("iris", "umap_2d", 0, "ami", 0.5, np.nan)
    runs = table(line, line, ("iris", "umap_2d", 1, "ami", 0.9, np.nan))
    assert summary(runs)["count"].to_list() == [2]
    assert values(runs, "iris", "umap_2d", "ami").to_list() == [0.5, 0.9]


def test_the_mean_over_data_sets_resamples_data_sets():
    gaps = [Difference(m, m, m, 10) for m in (-1.0, 1.0, 3.0)] + [difference(by_seed(), by_seed())]
    found = mean_difference(gaps)
    # of the 27 resamples one has the mean -1 and one the mean 3, each more than 2.5 %
    assert found == (1.0, -1.0, 3.0, 3)
    assert mean_difference(gaps[:1])[0] == -1.0
    assert np.isnan(mean_difference(gaps[3:]).median)
