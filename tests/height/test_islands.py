"""Heights across gaps: two parts whose offset the springs leave open."""

import numpy as np
import pytest
import scipy.sparse

from finsler_ext.height.islands import settle_islands
from finsler_ext.scales import log_level


def pull(distance):
    return np.asarray(distance)


def chains(n, offset=0.0, bridge=0.0):
    """Two chains of n points; heights rise by 2 per unit of level within each."""
    one = scipy.sparse.diags_array(np.ones(n - 1), offsets=1, shape=(n, n))
    graph = scipy.sparse.block_diag([one, one]).tolil()
    if bridge:
        graph[n - 1, n] = bridge
    level = np.concatenate([np.linspace(0, 1, n), np.linspace(3, 4, n)])
    height = 2.0 * level - np.repeat([0.0, 6.0 - offset], n)
    place = np.column_stack([np.arange(2.0 * n), np.zeros(2 * n)])
    return place, height, scipy.sparse.csr_array(graph), level


def gap(height, n):
    return height[n:].mean() - height[:n].mean()


@pytest.mark.parametrize("whole", [False, True])
def test_the_law_within_is_continued_across_the_gap(whole):
    place, height, graph, level = chains(40)
    assert gap(height, 40) == pytest.approx(0)
    settled, islands = settle_islands(place, height, graph, pull, level, whole=whole)
    assert islands.settled
    assert islands.n_parts == 2
    assert islands.slope == pytest.approx(2, rel=1e-2)
    assert gap(settled, 40) == pytest.approx(6, rel=1e-2)
    assert np.diff(settled)[:39] == pytest.approx(np.diff(height)[:39], rel=0.1)
    assert settled.mean() == pytest.approx(0, abs=1e-9)


def test_parts_that_hang_together_stay_where_the_springs_hold_them():
    place, height, graph, level = chains(20, offset=1.0, bridge=1.0)
    settled, islands = settle_islands(place, height, graph, pull, level)
    assert islands.n_parts == 1
    assert gap(settled, 20) == pytest.approx(gap(height, 20), abs=1.5)
    loose = chains(20, offset=1.0, bridge=1e-6)
    assert gap(settle_islands(*loose[:3], pull, loose[3])[0], 20) > 4


def test_without_a_law_nothing_moves_and_the_reason_is_said():
    place, height, graph, level = chains(40)
    for other, reason in (
        (None, "no scale"),
        (np.ones(80), "flat"),
        (-level, "does not follow"),
        (np.random.default_rng(0).normal(size=80), "does not follow"),
        (np.where(np.arange(80) < 10, level, np.nan), "fewer than"),
    ):
        settled, islands = settle_islands(place, height, graph, pull, other)
        assert np.array_equal(settled, height)
        assert not islands.settled
        assert reason in islands.reason
        assert "do not compare" in str(islands)


def test_levels_of_duplicates_are_finite():
    level = log_level([0.0, 1.0, np.nan, 2.0])
    assert level[3] - level[1] == pytest.approx(np.log(2.0))
    assert -np.inf < level[0] <= level[1]
    assert np.isnan(level[2])
    assert np.isnan(log_level([0.0, np.nan])).all()
