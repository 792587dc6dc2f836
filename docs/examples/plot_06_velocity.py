"""
Cells that develop
==================

RNA velocity gives the probability that a cell turns into each of its neighbours. Embedded as
directed distances, early cells lie high and late cells low. The cells here are simulated: one line
that forks.

For real cells see :doc:`/guide/scanpy`: ``finsler_ext.scanpy.velocity(adata)`` reads CellRank's
and scvelo's results.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors

from finsler_ext import FinslerUMAP, read_directed
from finsler_ext.plot import plot_map

rng = np.random.default_rng(0)
n = 600
time = np.sort(rng.uniform(size=n))
branch = np.where(time < 0.4, 0, rng.integers(1, 3, size=n))
side = np.array([0.0, 1.0, -1.0])[branch]
cells = np.column_stack([time, side * np.maximum(time - 0.4, 0)]) @ rng.normal(size=(2, 20))
cells += 0.02 * rng.normal(size=cells.shape)

# %%
# Transition probabilities: a cell is more likely to move to a later neighbour. They are made from
# the true times with a little noise, so this is an easy case; real velocities are much noisier.

neighbors = NearestNeighbors(n_neighbors=15).fit(cells).kneighbors(return_distance=False)
later = time[neighbors] - time[:, None]
later += 0.02 * rng.normal(size=later.shape)  # velocities are noisy
likely = np.exp(30 * later)
likely /= likely.sum(axis=1, keepdims=True)
rows = np.repeat(np.arange(n), 15)
T = scipy.sparse.csr_matrix((likely.ravel(), (rows, neighbors.ravel())), shape=(n, n))

# %%
# ``values="transitions"`` turns a probability p into the length −log p.

data = read_directed(T, values="transitions")
model = FinslerUMAP(metric="precomputed", n_neighbors=8, random_state=0).fit(data)
rank = spearmanr(model.embedding_[:, 2], time).statistic
print(f"rank correlation between height and time: {rank:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_map(model, color=time, label="true time", ax=left)
plot_map(model, ax=right)

# %%
# **When this will mislead you.** These cells are simulated. Velocities may point the wrong way for
# whole groups of cells, and then so does the height. Evidence compares neighbours; it does not know
# biology. On 739 cells of the mouse pancreas the first step, from ductal cells to those with little
# Ngn3, is not in the transitions, and scvelo's own pseudotime orders the stages better than the
# height (``benchmarks/results/applications.md``). Transition probabilities alone cannot be tested:
# keep the velocities in the AnnData, so that ``fsc.velocity`` can shuffle them.
