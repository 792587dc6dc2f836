"""Modules of 0.1.0 are found under their old names."""

import importlib
import pickle
import sys

import pytest

from finsler_ext._moved import _MODULES, _PACKAGES, new_name


@pytest.mark.parametrize("old", [*_MODULES, *_PACKAGES])
def test_every_old_module_has_its_contents(old):
    sys.modules.pop(f"finsler_ext.{old}", None)  # it warns once per process
    home = importlib.import_module(new_name(f"finsler_ext.{old}"))
    with pytest.warns(DeprecationWarning, match="has moved to"):
        moved = importlib.import_module(f"finsler_ext.{old}")
    assert set(dir(home)) <= set(dir(moved))


@pytest.mark.filterwarnings("ignore:.* has moved to:DeprecationWarning")
def test_a_pickle_of_an_old_name_loads():
    from finsler_ext.estimators.umap import FinslerUMAP

    text = pickle.dumps(FinslerUMAP, protocol=0)
    assert pickle.loads(text.replace(b"estimators.umap", b"umap")) is FinslerUMAP


def test_names_that_never_were_stay_unknown():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("finsler_ext.nothing")


def test_a_module_that_has_left_says_where_it_is():
    with pytest.raises(ModuleNotFoundError, match=r"benchmarks/methods/mds_peers\.py"):
        importlib.import_module("finsler_ext.mds_peers")
