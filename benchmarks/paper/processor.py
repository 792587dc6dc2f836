"""One set of instructions for all runs, so that they give the same numbers on any x86-64.

numpy, OpenBLAS and numba choose their instructions by the processor they find. With AVX-512 sums
are added up in another order than with AVX2, last digits differ, and an optimiser makes another
layout of them, as from another seed. So runs are held to AVX2, which every recent processor has.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["AVX512", "worker_environment"]

# Note in a ledger of runs that were made with AVX-512, before runs were held to AVX2.
AVX512 = "AVX-512"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# A processor of that kind. Which one matters: code is scheduled for it.
AVX2_ONLY = {
    "OPENBLAS_CORETYPE": "Zen",
    "NUMBA_CPU_NAME": "znver3",
    "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+popcnt,+sse4.2,-avx512f",
}


@contextmanager
def worker_environment(*, avx512: bool = False) -> Iterator[None]:
    """Environment of processes that are started inside: one core each, and AVX2 unless told."""
    before = dict(os.environ)
    os.environ.update(ONE_THREAD)
    if not avx512 and platform.machine().lower() in ("x86_64", "amd64"):
        os.environ.update(AVX2_ONLY)
        os.environ["NPY_DISABLE_CPU_FEATURES"] = " ".join(_beyond_avx2())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _beyond_avx2() -> list[str]:
    """What numpy would use beyond AVX2 here, by the names of this version of it."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [
        name
        for name in __cpu_dispatch__
        if (name == "X86_V4" or name.startswith("AVX512")) and __cpu_features__.get(name)
    ]
