"""Save a fitted model to a file, and load it."""

from __future__ import annotations

import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from finsler_ext.io import container
from finsler_ext.io.codec import Decoder, Encoder
from finsler_ext.io.names import is_estimator

__all__ = ["SaveMixin", "load", "read", "save"]

# Named in the file for whoever wonders what it was made with.
PACKAGES = ("finsler_ext", "numpy", "scipy", "scikit-learn", "numba", "umap-learn", "openTSNE")

# How zip archives start.
ARCHIVE = b"PK"


class SaveMixin:
    """``save`` for estimators."""

    def save(self, path) -> None:
        """Write this model to a file that `finsler_ext.load` reads.

        The file holds arrays and JSON, and no code. It is written whole or not at all. Models
        with functions among their parameters (a callable metric, callbacks) cannot be saved.

        Parameters
        ----------
        path : str or path-like
            By custom it ends in ".finsler".
        """
        save(self, path)


def save(model, path, about: dict | None = None) -> None:
    """Write a fitted model, or an openTSNE embedding of ours, to a file.

    Parameters
    ----------
    model : FinslerUMAP, FinslerTSNE, FinslerMDS or openTSNE.TSNEEmbedding
    path : str or path-like
    about : dict, optional
        What else is to be kept with the model: text, numbers, arrays. `read` returns it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from finsler_ext import FinslerMDS, load
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = FinslerMDS(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.finsler")
    ...     loaded = load(f"{folder}/model.finsler")
    >>> bool(np.array_equal(loaded.transform(X[:3] + 0.1), model.transform(X[:3] + 0.1)))
    True
    """
    if not is_estimator(type(model)):
        raise ValueError(
            f"model: a {type(model).__name__} cannot be saved. A file is for FinslerUMAP, "
            "FinslerTSNE and FinslerMDS themselves, not for classes derived from them."
        )
    if hasattr(model, "fit"):
        check_is_fitted(model, _fitted_attribute(model))

    def build(keep):
        encoder = Encoder(keep)
        return encoder.encode(model, ""), encoder.encode(about or {}, "about")

    container.write(path, build, _versions())


def load(path) -> Any:
    """Read a model that was written by ``model.save(path)``.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The model, fitted as it was. Under the same versions of all packages it transforms to the same
    bits as the one that was saved; under other versions to the same places within rounding.

    Raises
    ------
    ValueError
        If the file is damaged, truncated, something else, or from a later version. Files are
        checked as a whole before anything is made of them, and no code in them is run.
    """
    return read(path)[0]


def read(path) -> tuple[Any, dict]:
    """A model as `load` returns it, and what was kept with it."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            reader = container.Reader(archive, _versions()["finsler_ext"])
            reader.check()
            decoder = Decoder(reader.fetch)
            model = decoder.decode(reader.manifest["model"])
            about = decoder.decode(reader.manifest["about"])
    except (OSError, MemoryError, ModuleNotFoundError) as error:
        if isinstance(error, OSError) and error.errno is None:  # zlib and zipfile raise these, too
            raise _unreadable(path, error) from None
        raise
    except container.FutureFile as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    except Exception as error:  # a broken archive raises nearly anything
        raise _unreadable(path, error) from None
    if not is_estimator(type(model)):
        raise _unreadable(path, "it holds no model")
    return model, about


def _unreadable(path: Path, why) -> ValueError:
    with open(path, "rb") as file:
        start = file.read(4)
    if start[:2] != ARCHIVE or isinstance(why, container.NotAModel):
        return ValueError(
            f"{path} is not a model saved by finsler_ext. Give a file written by model.save."
        )
    reason = " ".join(str(why).split()) or type(why).__name__
    return ValueError(
        f"{path} is damaged or truncated ({reason}). Copy it again, or save the model again."
    )


def _fitted_attribute(model) -> str:
    return "graph_" if hasattr(model, "graph_") else "embedding_"


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
