"""Ctrl-C that falls into a compiled function reaches the caller as KeyboardInterrupt."""

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP


def interrupted_in_compiled_code(*args, **kwargs):
    """What numba raises when a signal arrives while it builds an object."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        raise SystemError("returned a result with an exception set") from interrupt


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
def test_an_interrupt_in_compiled_code_is_an_interrupt(estimator, monkeypatch):
    model = estimator(random_state=0)
    monkeypatch.setattr(estimator, "_construct", interrupted_in_compiled_code)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.random.default_rng(0).normal(size=(60, 3)))
    assert not hasattr(model, "embedding_")


def test_another_error_of_compiled_code_stays_one(monkeypatch):
    def broken(*args, **kwargs):
        raise SystemError("broken")

    monkeypatch.setattr(FinslerUMAP, "_construct", broken)
    with pytest.raises(SystemError, match="broken"):
        FinslerUMAP(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 3)))
