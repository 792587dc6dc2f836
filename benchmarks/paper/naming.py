"""Names of methods for readers."""

from __future__ import annotations

from benchmarks.paper.methods import FAMILIES, parse

__all__ = ["title_of"]


def title_of(method: str) -> str:
    """A method's name for readers."""
    request = parse(method)
    title = FAMILIES[request.family].title
    if request.omega is not None:
        drift = f"{request.omega:g}" if isinstance(request.omega, float) else request.omega
        title += f", ω = {drift}"
    title += f", {request.dimension}-D"
    return title + (f", k⁺ = {request.extension}" if request.extension else "")
