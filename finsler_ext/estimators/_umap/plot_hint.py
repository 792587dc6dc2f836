"""umap.plot draws two columns; asked for three, the embedding says where two are."""

from __future__ import annotations

import sys

__all__ = ["HintedEmbedding"]

ASKER = "umap.plot"


class HintedEmbedding:
    """The attribute ``embedding_``, kept among the others of the model.

    umap.plot answers three columns with "only implemented for 2D embeddings", or with an error of
    pandas. When that module reads the attribute, the error names `map_plane` instead; everyone
    else gets the array.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model, owner: type | None = None):
        if model is None:
            return self
        try:
            embedding = vars(model)[self.name]
        except KeyError:
            raise AttributeError(
                f"{type(model).__name__!r} object has no attribute {self.name!r}"
            ) from None
        if embedding.ndim == 2 and embedding.shape[1] > 2 and _asker() == ASKER:
            raise ValueError(
                f"umap.plot draws two columns, and this {type(model).__name__} has "
                f"{embedding.shape[1]}: the map and, last, the height. Pass model.map_plane() in "
                "place of the model, or use finsler_ext.plot."
            )
        return embedding

    def __set__(self, model, value) -> None:
        vars(model)[self.name] = value

    def __delete__(self, model) -> None:
        del vars(model)[self.name]


def _asker() -> str:
    """The module whose code reads the attribute."""
    return sys._getframe(2).f_globals.get("__name__", "")
