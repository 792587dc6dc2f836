"""What the tests of FinslerUMAP share."""

from finsler_ext import FinslerUMAP

# Fits of a few epochs need not have a height worth reading.
SMALL_DRIFT_WARNING = "ignore:With omega_norm:UserWarning"


def quick(**kwds):
    return FinslerUMAP(**({"random_state": 0, "n_epochs": 30} | kwds))
