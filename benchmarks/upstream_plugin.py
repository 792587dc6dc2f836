"""A pytest plugin that puts this project's classes in the place of those of umap-learn or openTSNE.

    FINSLER_UPSTREAM=umap-learn:2:0.01 pytest -p benchmarks.upstream_plugin …

The variable names the project, the default number of columns and the default drift. Defaults are
those of the parent in all other respects.
"""

from __future__ import annotations

import inspect
import os

PROJECT, COLUMNS, DRIFT = os.environ["FINSLER_UPSTREAM"].split(":")


def with_defaults(estimator, name: str):
    """A subclass with other defaults, under the parent's name."""
    signature = inspect.signature(estimator.__init__)
    defaults = {"n_components": int(COLUMNS), "omega_norm": float(DRIFT)}
    parameters = [
        p.replace(default=defaults.get(p.name, p.default)) for p in signature.parameters.values()
    ]

    def __init__(self, *args, **kwds):
        bound = inspect.signature(estimator.__init__).bind_partial(self, *args, **kwds)
        given = {k: v for k, v in bound.arguments.items() if k != "self"}
        estimator.__init__(self, **(defaults | given))

    __init__.__signature__ = signature.replace(parameters=parameters)
    return type(name, (estimator,), {"__init__": __init__, "__module__": estimator.__module__})


if PROJECT == "umap-learn":
    import umap
    import umap.umap_

    from finsler_ext import FinslerUMAP

    umap.UMAP = umap.umap_.UMAP = with_defaults(FinslerUMAP, "UMAP")
else:
    import openTSNE
    import openTSNE.sklearn
    import openTSNE.tsne

    import finsler_ext.tsne.opentsne
    from finsler_ext import FinslerTSNE

    openTSNE.TSNE = openTSNE.tsne.TSNE = with_defaults(
        finsler_ext.tsne.opentsne.OpenFinslerTSNE, "TSNE"
    )
    openTSNE.sklearn.TSNE = with_defaults(FinslerTSNE, "TSNE")
