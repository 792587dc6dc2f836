"""
Density that UMAP hides
=======================

UMAP gives every point its own unit of length. Clusters of very different spread therefore get
about the same size. The height keeps the difference.
"""

import matplotlib.pyplot as plt
import numpy as np
from umap import UMAP

from finsler_ext import FinslerUMAP

rng = np.random.default_rng(0)
spread = np.array([0.5, 1.0, 2.0, 3.0])
centres = 20 * np.eye(4, 10)
cluster = np.repeat(np.arange(4), 200)
X = centres[cluster] + spread[cluster, None] * rng.normal(size=(800, 10))

plain = UMAP(random_state=0, n_jobs=1).fit_transform(X)
model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
height = model.embedding_[:, 2]

# %%
# The spread of a cluster in the UMAP map says little about its spread in the data. The mean height
# of the clusters is in the right order.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
dots = left.scatter(*plain.T, c=spread[cluster], s=8, cmap="viridis")
figure.colorbar(dots, ax=left, label="true standard deviation")
left.set(title="UMAP", xticks=[], yticks=[])
right.boxplot([height[cluster == c] for c in range(4)])
right.set_xticks(range(1, 5), [f"{s:g}" for s in spread])
right.set(xlabel="true standard deviation", ylabel="height: sparse above dense")
right.set_title("FinslerUMAP")

for c in range(4):
    size = plain[cluster == c].std(axis=0).mean()
    mean = height[cluster == c].mean()
    print(f"true {spread[c]:.1f}   size in UMAP {size:.2f}   mean height {mean:+.2f}")

# %%
# The clusters do not touch, so no edge says how their heights compare. `fit` finds how the height
# follows the density within clusters, and continues that across the gaps. ``islands_`` says whether
# it could.

print(model.islands_)
