"""
Many points, up to a million
============================

The code for large data is the same. This example embeds 10,000 rows, so that these pages are built
quickly. With a million rows of 50 columns the same call takes 88 s and 2.6 GiB of
memory on two cores, and ``transform`` then places 10,000 new rows in 2.4 s
(``python -m benchmarks.million``). :doc:`/guide/large` says more.
"""

import time

import numpy as np

from finsler_ext import FinslerUMAP
from finsler_ext.plot import plot_map

rng = np.random.default_rng(0)
n, n_clusters = 10_000, 12  # the first may be a million
cluster = rng.integers(n_clusters, size=n)
spread = np.linspace(0.5, 2.0, n_clusters)
X = 6 * rng.normal(size=(n_clusters, 20))[cluster]
X += spread[cluster, None] * rng.normal(size=X.shape)

start = time.perf_counter()
model = FinslerUMAP(random_state=0).fit(X.astype(np.float32))
print(f"{n} rows in {time.perf_counter() - start:.0f} s, compilation included")

# %%
# Up to 100,000 points are drawn one by one. More become an image, if datashader is installed.

plot_map(model)
