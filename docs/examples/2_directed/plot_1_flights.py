"""
Flight times with a jet stream
==============================

Flying west takes longer than flying east. Given flying times alone, `FinslerMDS` places the
airports and finds the direction and the strength of the mean wind.

The times here are simulated, so that the answer is known; there are
:doc:`real ones </gallery/3_applications/plot_4_us_flights>` among the applications.
"""

import matplotlib.pyplot as plt
import numpy as np

from finsler_ext import FinslerMDS
from finsler_ext.plot import plot_asymmetry

rng = np.random.default_rng(0)
east_north = rng.uniform(size=(120, 2)) * [40, 20]
step = east_north[None, :] - east_north[:, None]  # step[i, j] leads from i to j
times = np.linalg.norm(step, axis=2) - 0.15 * step[..., 0]
times *= rng.uniform(0.97, 1.03, size=times.shape)
np.fill_diagonal(times, 0)

model = FinslerMDS(n_components="auto", metric="precomputed", omega_norm="auto", random_state=0)
embedding = model.fit_transform(times)
print(f"drift found: {model.omega_norm_:.3f} (planted: 0.15)")
print(model.column_choice_.reason)

# %%
# Two columns are enough, because a wind that is the same everywhere needs no third one. The height
# is one of the axes of the map and points west. On the left are the true places, on the right those
# found.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.scatter(*east_north.T, c=east_north[:, 0], cmap="viridis")
left.set(title="true places", xlabel="east", ylabel="north", aspect="equal")
right.scatter(-embedding[:, 1], embedding[:, 0], c=east_north[:, 0], cmap="viridis")
right.set(title="from times alone", xlabel="− height", ylabel="map (its sign is arbitrary)")
right.set_aspect("equal")

# %%
# The differences between the way there and the way back: in the data and in the embedding.

plot_asymmetry(model)
