"""
Currents in a circle: a drift field
===================================

A height shows differences that add up: if A is above B and B above C, then A is above C. Where
currents flow in a circle there is no such order. A drift field over the map shows them.
"""

import matplotlib.pyplot as plt
import numpy as np

from finsler_ext.drift_field import fit_drift_field
from finsler_ext.plot import plot_drift

# Travel times on a round lake whose water turns counter-clockwise.
rng = np.random.default_rng(0)
angle, radius = 2 * np.pi * rng.uniform(size=250), np.sqrt(rng.uniform(size=250))
places = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
step = places[None, :] - places[:, None]
middle = (places[None, :] + places[:, None]) / 2
current = 0.3 * np.stack([-middle[..., 1], middle[..., 0]], axis=-1)
times = np.linalg.norm(step, axis=2) - (current * step).sum(axis=2)

# %%
# The field is judged on pairs that it was not fitted to, and compared with a drift that is the same
# everywhere.

field = fit_drift_field(places, distances=times)
print(field.verdict)
print(f"one drift explains {field.one_drift_share:.0%}, the field {field.share:.0%}")

# %%
# Arrows point along the cheaper way. The map may come from any method.

figure, axes = plt.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
for ax, style in zip(axes, ("arrows", "streamlines"), strict=True):
    plot_drift(places, field, style=style, ax=ax)
