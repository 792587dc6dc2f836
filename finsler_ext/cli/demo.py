"""``finsler-ext demo``: scikit-learn's digits, drawn twice."""

from __future__ import annotations

import time

from finsler_ext.cli.interrupts import Interrupts
from finsler_ext.cli.output import save_figure

__all__ = ["demo"]


def demo(options, interrupts: Interrupts) -> int:
    picture = save_figure(options.output)  # complains now rather than after the work
    from sklearn.datasets import load_digits

    from finsler_ext import FinslerUMAP
    from finsler_ext.cli.verdict import verdict
    from finsler_ext.plot import plot_map
    from finsler_ext.spaces.randers import check_omega_norm

    check_omega_norm(options.omega_norm)

    X, digit = load_digits(return_X_y=True)
    started = time.perf_counter()
    model = FinslerUMAP(omega_norm=options.omega_norm, random_state=options.seed).fit(X)
    seconds = time.perf_counter() - started
    interrupts.check()
    with picture(2) as (left, right):
        plot_map(model, color=digit, label="digit", ax=left).set_title("")
        plot_map(model, ax=right)
        left.figure.suptitle(f"scikit-learn's digits, ω = {options.omega_norm:g}")
    interrupts.written.append(options.output)
    print(
        f"Embedded {len(X)} digits in {seconds:.1f} s at omega_norm={options.omega_norm:g}; "
        f"picture in {options.output}. {verdict(model.skew_fidelity_)}"
    )
    return 0
