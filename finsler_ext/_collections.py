"""Dask collections given to an estimator go to `finsler_ext.dask`; nothing is imported before."""

from __future__ import annotations

from typing import Any

__all__ = ["fit_collection", "is_collection", "transform_collection"]


def is_collection(X) -> bool:
    """Whether X is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def fit_collection(model, X, **others) -> Any:
    _refuse("fit", others)
    from finsler_ext.dask import fit

    return fit(model, X)


def transform_collection(model, X, **others) -> Any:
    _refuse("transform", others)
    from finsler_ext.dask import transform

    return transform(model, X)


def _refuse(method: str, others: dict) -> None:
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(
            f"{given[0]}: {method} of a Dask collection takes the rows alone. Fit a sample of rows "
            "that is in memory, or leave it out."
        )
