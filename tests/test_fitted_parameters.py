"""Parameters that are changed after a fit do not change what a model does."""

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, load
from finsler_ext.umap import transform

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = np.random.default_rng(0).normal(size=(40, 4))
NEW = X[:3] + 0.1
CHANGED = [
    (FinslerUMAP(n_epochs=10, random_state=0), {"metric": "cosine"}),
    (FinslerUMAP(n_epochs=10, random_state=0), {"space": "matsumoto"}),
    (FinslerUMAP(n_epochs=10, random_state=0), {"affinity": "harmonic"}),
    (FinslerUMAP(n_epochs=10, random_state=0), {"unique": True}),
    (FinslerUMAP(n_epochs=10, random_state=0), {"local_connectivity": 2.0, "n_epochs": 3}),
    (FinslerUMAP(n_epochs=10, random_state=0), {"repulsion_strength": 3.0, "learning_rate": 3.0}),
    (FinslerMDS(max_iter=5, random_state=0), {"metric": "cosine"}),
    (FinslerMDS(max_iter=5, random_state=0), {"space": "matsumoto"}),
    (FinslerMDS(max_iter=5, random_state=0), {"source_scale": "kth"}),
    (FinslerMDS(max_iter=5, random_state=0), {"local_scale": np.ones(40)}),
    (FinslerTSNE(n_iter=5, early_exaggeration_iter=5, perplexity=5), {"metric": "precomputed"}),
    (FinslerTSNE(n_iter=5, early_exaggeration_iter=5, perplexity=5), {"local_scale": np.ones(40)}),
]


@pytest.mark.parametrize(("model", "change"), CHANGED, ids=[f"{m!r:.9} {c}" for m, c in CHANGED])
def test_transform_uses_the_parameters_of_the_fit(model, change, tmp_path):
    before = model.fit(X).transform(NEW)
    model.set_params(**change)
    np.testing.assert_array_equal(model.transform(NEW), before)
    model.save(tmp_path / "changed.finsler")
    loaded = load(tmp_path / "changed.finsler")
    np.testing.assert_array_equal(loaded.transform(NEW), before)
    name, value = next(iter(change.items()))
    np.testing.assert_array_equal(getattr(loaded, name), value)  # a new fit would use it


def test_threads_set_after_a_fit_are_those_of_transform(monkeypatch):
    place, used = transform.place_points, []

    def watched(*given, n_threads, **others):
        used.append(n_threads)
        return place(*given, n_threads=n_threads, **others)

    monkeypatch.setattr(transform, "place_points", watched)
    model = FinslerUMAP(n_epochs=10, random_state=0, n_jobs=1).fit(X)
    model.set_params(n_jobs=3).transform(NEW)
    assert used == [3]
