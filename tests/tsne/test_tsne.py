"""FinslerTSNE as a scikit-learn estimator and as one of openTSNE's objects."""

import pickle
import threading
import warnings
from copy import deepcopy

import numpy as np
import openTSNE
import pytest
import scipy.sparse
from openTSNE.affinity import FixedSigmaNN, PerplexityBasedNN
from openTSNE.callbacks import Callback
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.manifold import trustworthiness
from sklearn.utils.estimator_checks import parametrize_with_checks

from finsler_ext import FinslerTSNE
from finsler_ext.io import load, save
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.tsne import layout, opentsne
from finsler_ext.tsne.affinity import DirectedPerplexity, PrecomputedDirected
from finsler_ext.tsne.gradient import FinslerGradient
from finsler_ext.tsne.layout import TsneActs, initial_embedding
from finsler_ext.tsne.optimizer import FinslerDescent

QUICK = {"n_iter": 60, "early_exaggeration_iter": 40, "random_state": 0}


def expected_failures(_):
    reason = "new points are placed by a descent of their own, close to the fitted place, not on it"
    return dict.fromkeys(
        ("check_transformer_general", "check_transformer_data_not_an_array"), reason
    )


@parametrize_with_checks(
    [
        FinslerTSNE(n_iter=20, early_exaggeration_iter=10, perplexity=5, random_state=0),
        FinslerTSNE(n_iter=9, early_exaggeration_iter=5, perplexity=5, metric="precomputed"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # tiny data: perplexity too large, heights that say nothing
        warnings.simplefilter("ignore")
        check(estimator)


def ray_disk(n):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    order = np.random.RandomState(0).permutation(n)
    return np.column_stack([r * np.cos(a), r * np.sin(a)])[order], r[order]


def test_height_of_a_disk_follows_the_radius():
    X, radius = ray_disk(300)
    model = FinslerTSNE(omega_norm=0.5, random_state=0).fit(X)
    assert spearmanr(model.embedding_[:, 2], radius).statistic > 0.95
    assert model.skew_fidelity_.sign > 0.9
    assert model.density_height_ > 0.95


def test_a_planted_height_is_found():
    """Affinities made from a layout in Randers space: the height comes back."""
    rng = np.random.default_rng(0)
    truth = np.column_stack([rng.uniform(-15, 15, size=(600, 2)), rng.uniform(-3, 3, size=600)])
    step = truth[None] - truth[:, None]
    F = np.sqrt((step**2).sum(-1)) + 0.5 * step[..., -1]
    q = 1 / (1 + F**2)
    np.fill_diagonal(q, 0.0)
    model = FinslerTSNE(omega_norm=0.5, random_state=0).fit(None, affinities=PrecomputedDirected(q))
    assert spearmanr(model.embedding_[:, 2], truth[:, 2]).statistic > 0.95
    assert model.skew_fidelity_.sign > 0.9


def test_without_drift_and_direction_it_is_opentsne(few_digits):
    """From a layout in which the clusters are settled: before that, both descents are chaotic,
    and openTSNE's own runs differ by more than a percent."""
    X, _ = few_digits
    affinities = PerplexityBasedNN(X, 20)
    upstream = {"theta": 0.0, "negative_gradient_method": "bh", "random_state": 0}
    settled = np.asarray(openTSNE.TSNE(n_iter=250, **upstream).fit(affinities=affinities))
    late = {"early_exaggeration_iter": 0, "n_iter": 500}
    theirs = openTSNE.TSNE(**upstream, **late).fit(affinities=affinities, initialization=settled)
    ours = FinslerTSNE(n_components=2, omega_norm=0.0, **late)
    ours.fit(X, affinities=affinities, initialization=settled)
    assert ours.kl_divergence_ == pytest.approx(theirs.kl_divergence, rel=0.01)


def test_columns_are_nested_at_small_drifts(digits):
    """All keep nearly the neighbours of three free columns, the map those of two; no jump at 0."""
    X = digits[0][:600]
    near = exact_neighbors(X, 16).indices[:, 1:]
    cases = {
        "none": {"omega_norm": 0.0},
        "tiny": {"omega_norm": 0.001},
        "small": {"omega_norm": 0.01},
        "large": {"omega_norm": 0.5},
        "three": {"omega_norm": 0.0, "height": "free"},
        "two": {"omega_norm": 0.0, "n_components": 2},
    }
    found = {
        name: np.asarray(FinslerTSNE(perplexity=20, random_state=0, **case).fit(X).embedding_)
        for name, case in cases.items()
    }
    kept = {name: neighborhood_preservation(near, Y) for name, Y in found.items()}
    for name in ("none", "tiny", "small"):
        assert kept[name] > kept["three"] - 0.015 > kept["two"]
        assert neighborhood_preservation(near, found[name][:, :2]) > kept["two"] - 0.01
    assert kept["large"] < kept["small"] - 0.01
    assert np.corrcoef(found["none"][:, 2], found["tiny"][:, 2])[0, 1] > 0.98


def test_the_map_moves_the_less_the_larger_the_drift(few_digits):
    options = {"perplexity": 10, "n_iter": 100, "random_state": 0}
    places = {
        omega: np.asarray(FinslerTSNE(omega_norm=omega, **options).fit(few_digits[0]).embedding_)
        for omega in (0.01, 0.1, 0.3, 0.95)
    }
    settled = places[0.95][:, :2]  # the share of the height is 0.001
    moved = [np.abs(Y[:, :2] - settled).mean() for Y in places.values()]
    assert moved[0] > moved[1] > 5 * moved[2] > 0
    assert moved[0] < np.median(np.sort(squareform(pdist(settled)), axis=1)[:, 5])


def test_barnes_hut_ends_where_the_exact_sum_does(digits):
    """From the same place: whole fits end in one of several minima, some 1 % apart."""
    X = digits[0][:1500]
    affinities = DirectedPerplexity(X, 30)
    start = opentsne.OpenFinslerTSNE(n_iter=250, negative_gradient_method="bh").fit(X, affinities)
    kl = {}
    for method in ("exact", "bh"):
        model = opentsne.OpenFinslerTSNE(
            n_iter=50, early_exaggeration_iter=0, negative_gradient_method=method
        )
        kl[method] = model.fit(X, affinities, np.asarray(start)).kl_divergence
    assert kl["bh"] == pytest.approx(kl["exact"], rel=1e-3)
    assert kl["exact"] < start.kl_divergence


def test_same_seed_same_bits_for_any_number_of_threads(digits):
    X = np.vstack([digits[0], digits[0] + 0.5])  # 3594 rows, enough for two threads
    models = [
        FinslerTSNE(n_iter=10, early_exaggeration_iter=10, perplexity=10, random_state=3,
                    n_jobs=jobs, omega_norm=0.5, neighbors=neighbors)
        for neighbors in ("exact", "annoy") for jobs in (1, 2)
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # after twenty steps the height says nothing yet
        one, two, three, four = (m.fit_transform(X) for m in models)
    assert np.array_equal(one, two)
    assert np.array_equal(three, four)


def test_attributes_and_clone(tsne_of_digits):
    X, model = tsne_of_digits
    assert model.embedding_.shape == (500, 3)
    assert isinstance(model.embedding_, openTSNE.TSNEEmbedding)
    assert np.asarray(model.embedding_).mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert model.kl_divergence_ > 0
    assert model.omega_norm_ == 0.5
    assert model.skew_fidelity_.sign > 0.6
    assert model.affinities_.P.sum() == pytest.approx(1)
    assert not hasattr(model, "drift_choice_")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.early_exaggeration == "auto"
    named = clone(model).set_params(**QUICK).set_output(transform="pandas").fit_transform(X[:100])
    assert list(named.columns) == ["finslertsne0", "finslertsne1", "finslertsne_height"]


def test_transform_before_fit():
    with pytest.raises(NotFittedError):
        FinslerTSNE().transform(np.zeros((3, 2)))


def test_phases_of_ones_own(few_digits):
    X, _ = few_digits
    start = opentsne.OpenFinslerTSNE(random_state=0, perplexity=20).prepare_initial(X)
    P = start.affinities.P.copy()
    early = start.optimize(n_iter=40, exaggeration=12, momentum=0.5)
    late = early.optimize(n_iter=60)
    assert abs(start.affinities.P - P).max() == 0
    assert late.kl_divergence < early.kl_divergence
    assert np.asarray(start).std() < 1e-3  # not in place
    again = pickle.loads(pickle.dumps(early)).optimize(n_iter=60)
    assert np.array_equal(late, again)
    with pytest.raises(ValueError, match="Euclidean gradients"):
        late.optimize(n_iter=1, negative_gradient_method="bh")
    free = late.optimize(n_iter=5, negative_gradient_method=FinslerGradient(0.0))
    assert np.isfinite(free).all()


def test_what_another_opentsne_keeps_in_its_optimizer_is_not_saved():
    """Its caches have no line in the schema of a model file, and could not be saved."""
    descent = FinslerDescent()
    descent.update, descent._symmetrized = np.ones((2, 3)), (None, None, 0)
    again = pickle.loads(pickle.dumps(descent))
    assert vars(again).keys() == {"gains", "update"}
    assert np.array_equal(again.update, descent.update)


def test_an_embedding_knows_how_far_to_trust_its_height(few_digits, tmp_path):
    X, _ = few_digits
    maker = opentsne.OpenFinslerTSNE(random_state=0, perplexity=20)
    start = maker.prepare_initial(X)
    early = start.optimize(n_iter=40, exaggeration=12)
    late = early.optimize(n_iter=60)
    # from the definition: edges of the affinities, scales of both ends, heights of both ends
    i, j = late.affinities.P.nonzero()
    scale = np.log(late.affinities.local_scale)
    rise = np.asarray(late)[j, 2] - np.asarray(late)[i, 2]
    share = np.mean(np.sign(scale[j] - scale[i]) == np.sign(rise))
    assert late.skew_fidelity_.sign == pytest.approx(share, abs=0.01)
    assert late.skew_fidelity_ != early.skew_fidelity_
    assert early.skew_fidelity_ == start.optimize(n_iter=40, exaggeration=12).skew_fidelity_
    assert pickle.loads(pickle.dumps(late)).skew_fidelity_ == late.skew_fidelity_
    save(late, tmp_path / "late.finsler")
    assert load(tmp_path / "late.finsler").skew_fidelity_ == late.skew_fidelity_
    assert not hasattr(late[:, :2], "skew_fidelity_")
    fitted = opentsne.OpenFinslerTSNE(**QUICK)
    assert fitted.fit(X).skew_fidelity_ == fitted.skew_fidelity_


class StopAt(Callback):
    def __init__(self, iteration):
        self.iteration, self.seen = iteration, []

    def __call__(self, iteration, error, embedding):
        self.seen.append(error)
        return len(self.seen) == self.iteration


def test_a_callback_can_stop_and_the_divergence_is_that_of_the_moment(few_digits):
    X, _ = few_digits
    stop = StopAt(2)
    model = opentsne.OpenFinslerTSNE(
        random_state=0, perplexity=20, callbacks=stop, callbacks_every_iters=10
    )
    embedding = model.fit(X)
    assert len(stop.seen) == 2
    assert embedding.kl_divergence == model.kl_divergence_
    error, _ = FinslerGradient(0.5)(embedding, embedding.affinities.P, should_eval_error=True)
    assert error == pytest.approx(embedding.kl_divergence, abs=1e-9)
    # so early, the height that is put on the map is too small to change the divergence
    assert error == pytest.approx(stop.seen[-1], abs=1e-4)
    assert embedding.affinities.P.sum() == pytest.approx(1)


class Interrupt(Callback):
    def __call__(self, iteration, error, embedding):
        raise KeyboardInterrupt


def test_ctrl_c_leaves_affinities_and_threads_as_they_were(few_digits):
    X, _ = few_digits
    model = FinslerTSNE(random_state=0, perplexity=20, callbacks=Interrupt())
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.affinities_.P.sum() == pytest.approx(1)
    assert np.ptp(np.asarray(model.embedding_)) > 1e-2  # what was reached is there
    assert threading.active_count() == threads


def test_given_affinities_of_opentsne(few_digits):
    X, _ = few_digits
    affinities = FixedSigmaNN(X, sigma=15, k=20, symmetrize=False)
    model = FinslerTSNE(omega_norm=0.5, random_state=0)
    model.fit(X, affinities=affinities)
    assert model.affinities_ is affinities
    assert model.local_scale_ is None
    assert np.isnan(model.density_height_)
    assert np.isfinite(model.skew_fidelity_.sign)
    with pytest.raises(ValueError, match="affinities must be an instance"):
        model.fit(X, affinities=affinities.P)


def test_auto_drift_says_what_it_tried(digits):
    X, _ = ray_disk(200)
    model = FinslerTSNE(omega_norm="auto", perplexity=10, random_state=0).fit(X)
    choice = model.drift_choice_
    assert model.omega_norm_ == choice.omega_norm
    assert [t.omega_norm for t in choice.trials][:2] == [0.0, 0.9]
    assert model.omega_norm == "auto"
    with pytest.raises(ValueError, match="prepare_initial cannot"):
        opentsne.OpenFinslerTSNE(omega_norm="auto").prepare_initial(X)


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
@pytest.mark.parametrize("height", ["held", "free"])
def test_trials_of_auto_share_start_and_first_act(few_digits, monkeypatch, height):
    calls = []

    def counted(function, name):
        def call(*arguments, **keywords):
            calls.append(name)
            return function(*arguments, **keywords)

        return call

    monkeypatch.setattr(layout, "initial_embedding", counted(initial_embedding, "start"))
    monkeypatch.setattr(TsneActs, "settle", counted(TsneActs.settle, "first act"))
    model = FinslerTSNE(omega_norm="auto", height=height, perplexity=10, **QUICK)
    assert len(model.fit(few_digits[0]).drift_choice_.trials) > 1
    # a free layout has another start without a drift
    assert calls.count("start") == (1 if height == "held" else 2)
    assert calls.count("first act") == (1 if height == "held" else 0)


def test_auto_drift_of_symmetric_affinities_is_zero(few_digits):
    X, _ = few_digits
    P = PerplexityBasedNN(X, 20)
    with pytest.warns(UserWarning, match="chose 0"):
        model = FinslerTSNE(omega_norm="auto", **QUICK).fit(X, affinities=P)
    assert model.omega_norm_ == 0.0
    assert "no asymmetry" in model.drift_choice_.reason


def test_symmetric_affinities_start_as_a_map(few_digits):
    X, _ = few_digits
    for kwds in ({"affinity": "symmetrized"}, {"affinity": "harmonic"}):
        start = opentsne.OpenFinslerTSNE(perplexity=20, random_state=0, **kwds).prepare_initial(X)
        assert np.asarray(start)[:, 2].std() > 1e-6
    start = opentsne.OpenFinslerTSNE(perplexity=20, random_state=0).prepare_initial(X)
    assert not np.asarray(start)[:, 2].any()


@pytest.mark.parametrize("initialization", ["pca", "spectral", "random"])
def test_initialisations(few_digits, initialization):
    X, _ = few_digits
    start = opentsne.OpenFinslerTSNE(
        perplexity=20, initialization=initialization, random_state=0
    ).prepare_initial(X)
    assert np.asarray(start)[:, 0].std() == pytest.approx(1e-4, rel=0.1)


def test_directed_distances_show_in_the_height():
    """Uphill is longer: D_ij = ‖x_j − x_i‖ + 0.5 (h_j − h_i)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    level = 0.6 * X[:, 0]
    step = np.linalg.norm(X[None] - X[:, None], axis=-1)
    D = step + 0.5 * (level[None] - level[:, None])
    for omega_norm in (0.1, 0.9):  # the order of the heights does not depend on it
        model = FinslerTSNE(omega_norm=omega_norm, metric="precomputed", **QUICK).fit(D)
        assert model.height_ == "potential"
        assert spearmanr(np.asarray(model.embedding_)[:, 2], level).statistic > 0.999
    D[:150, 150:] = np.inf
    by_inf = FinslerTSNE(metric="precomputed", **QUICK).fit_transform(D)
    assert np.isfinite(by_inf).all()
    by_nan = FinslerTSNE(metric="precomputed", **QUICK).fit_transform(
        np.where(np.isinf(D), np.nan, D)
    )
    assert np.array_equal(by_inf, by_nan)


def test_sparse_features_are_embedded():
    rng = np.random.default_rng(0)
    X = rng.random((200, 8)) * (rng.random((200, 8)) < 0.7)
    model = FinslerTSNE(perplexity=20, **QUICK)
    dense = model.fit(X).affinities_.P
    sparse = clone(model).fit(scipy.sparse.csr_matrix(X)).affinities_.P
    assert abs(dense - sparse).max() < 1e-6


@pytest.mark.filterwarnings("ignore:perplexity")
@pytest.mark.parametrize("shape", [(2, 6), (3, 40), (20, 6)])
def test_few_or_empty_sparse_rows_are_embedded(shape):
    full = scipy.sparse.random_array(shape, density=0.5, format="csr", rng=0)
    for X in (full, scipy.sparse.csr_array(shape), scipy.sparse.csr_array(np.ones(shape))):
        Y = FinslerTSNE(n_components=4, **QUICK).fit_transform(X)
        assert np.isfinite(Y).all()
        assert np.ptp(Y, axis=0).all()


def test_a_part_of_an_embedding_may_be_copied_and_a_start():
    X = np.random.default_rng(0).normal(size=(60, 4))
    whole = FinslerTSNE(perplexity=9, **QUICK).fit(X).embedding_
    part = whole[:, :2]
    assert np.array_equal(deepcopy(part), part)
    again = clone(FinslerTSNE(perplexity=9, initialization=part, **QUICK))
    assert np.array_equal(again.initialization, part)
    assert np.isfinite(again.fit_transform(X)).all()


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_other_dimensions(few_digits, n_components):
    X, _ = few_digits
    model = FinslerTSNE(n_components=n_components, perplexity=20, random_state=0)
    with warnings.catch_warnings():
        if n_components == 1:  # no map beside the height
            warnings.simplefilter("ignore")
        embedding = model.fit_transform(X)
    assert embedding.shape == (200, n_components)
    assert trustworthiness(X, embedding, n_neighbors=5) > 0.93
    placed = model.transform(X + 0.01)
    spread = np.linalg.norm(embedding - embedding.mean(axis=0), axis=1).mean()
    assert np.median(np.linalg.norm(placed - embedding, axis=1)) < 0.1 * spread


@pytest.mark.parametrize("dof", [0.5, 2, 3])
def test_other_kernels_reach_a_minimum(few_digits, dof):
    X, _ = few_digits
    embedding = opentsne.OpenFinslerTSNE(dof=dof, perplexity=20, random_state=0).fit(X)
    _, gradient = FinslerGradient(0.5)(embedding, embedding.affinities.P, dof=dof)
    first, _ = FinslerGradient(0.5)(
        np.asarray(embedding) * 0.9, embedding.affinities.P, dof=dof, should_eval_error=True
    )
    assert embedding.kl_divergence < first
    assert np.abs(gradient).max() < 1e-3


def test_duplicates_and_equal_rows(few_digits):
    X, _ = few_digits
    twice = np.vstack([X, X])
    assert np.isfinite(FinslerTSNE(perplexity=20, **QUICK).fit_transform(twice)).all()
    model = FinslerTSNE(perplexity=5, **QUICK)
    assert np.isfinite(model.fit_transform(np.ones((50, 4)))).all()
    assert model.skew_fidelity_.reason


def test_bad_input_is_named(few_digits):
    X, _ = few_digits
    for omega in (-0.1, 1, 1.5, "much", None, True):
        with pytest.raises(ValueError, match="omega_norm"):
            FinslerTSNE(omega_norm=omega).fit(X)
    for dof in (0, -1):
        with pytest.raises(ValueError, match="dof must be a number > 0"):
            FinslerTSNE(dof=dof).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        FinslerTSNE().fit(np.where(X.max() == X, np.nan, X))
    with pytest.raises(ValueError, match="n_components must be an integer"):
        FinslerTSNE(n_components=0).fit(X)
    with pytest.raises(ValueError, match="initialization"):
        FinslerTSNE(initialization=np.zeros((200, 5))).fit(X)
    with pytest.raises(ValueError, match="initialization must be"):
        FinslerTSNE(initialization="best").fit(X)
    with pytest.raises(ValueError, match="affinity must be one of"):
        FinslerTSNE(affinity="fuzzy").fit(X)
    with pytest.raises(ValueError, match="X and affinities"):
        FinslerTSNE().fit(None)
    with pytest.warns(UserWarning, match="perplexity=100 is too large for 200 points"):
        FinslerTSNE(perplexity=100, **QUICK).fit(X)


def test_a_small_drift_is_a_choice_and_not_warned_of():
    X = np.random.default_rng(0).random((300, 3))
    assert FinslerTSNE(omega_norm=0.01, random_state=0).fit(X).skew_fidelity_.sign < 0.8


def test_verbose_says_which_gradient_and_how_far(few_digits, capfd):
    X, _ = few_digits
    FinslerTSNE(perplexity=20, verbose=True, **QUICK).fit(X)
    printed = capfd.readouterr()
    assert "Gradient: exact, 200 points" in printed.out
    assert "Height held" in printed.out
    assert "KL=" in printed.err


def test_asymmetric_metric_keeps_its_direction(few_digits):
    X, _ = few_digits

    def uphill(u, v):
        return np.linalg.norm(u - v) * np.exp(0.01 * (v.sum() - u.sum()))

    model = FinslerTSNE(metric=uphill, perplexity=10, random_state=0).fit(X[:100])
    assert model.skew_fidelity_.sign > 0.6
    P = model.affinities_.P
    D = np.array([[uphill(u, v) for v in X[:100]] for u in X[:100]])
    expected = DirectedPerplexity(D, 10, metric="precomputed").P
    assert abs(P - expected).max() < 1e-5 * abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize("n", [2000, 10_000])
def test_barnes_hut_ends_where_the_exact_sum_does_at_size(n):
    rng = np.random.default_rng(0)
    centre = 4 * rng.normal(size=(30, 20))
    X = centre[rng.integers(30, size=n)] + rng.uniform(0.3, 1.5, size=(n, 1)) * rng.normal(
        size=(n, 20)
    )
    affinities = DirectedPerplexity(X, 30, n_jobs=2)
    kl = {
        method: opentsne.OpenFinslerTSNE(random_state=0, negative_gradient_method=method)
        .fit(X, affinities=affinities)
        .kl_divergence
        for method in ("exact", "bh")
    }
    assert kl["bh"] == pytest.approx(kl["exact"], rel=5e-3)
