import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from umap import UMAP

from finsler_ext import FinslerUMAP
from tests.models import SMALL_DRIFT_WARNING, quick

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


def test_every_parameter_of_umap_is_there_under_its_name():
    theirs, ours = UMAP().get_params(), FinslerUMAP().get_params()
    assert set(theirs) < set(ours)
    changed = {name for name in theirs if theirs[name] != ours[name]}
    assert changed == {"n_components"}


def test_fit_changes_no_parameter(few_digits):
    model = quick(metric="cosine", n_jobs=2, tqdm_kwds={"leave": False})
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(few_digits[0])
    assert before == {name: repr(value) for name, value in model.get_params().items()}


def test_clone_pickle_pipeline_and_pandas(few_digits):
    X, _ = few_digits
    model = quick().fit(X)
    assert np.array_equal(clone(model).fit_transform(X), model.embedding_)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.embedding_, model.embedding_)
    assert again.skew_fidelity_ == model.skew_fidelity_
    piped = make_pipeline(StandardScaler(), quick()).fit_transform(X)
    assert piped.shape == (200, 3)
    frame = quick().set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["finslerumap0", "finslerumap1", "finslerumap2"]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    assert model.n_features_in_ == X.shape[1]
