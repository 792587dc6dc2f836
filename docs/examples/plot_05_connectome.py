"""
A connectome
============

Counts of synapses are directed: neurons send signals from the senses through interneurons to the
muscles. The counts here are simulated, with four layers and some feedback.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse

from finsler_ext import FinslerUMAP, read_directed
from finsler_ext.directed.symmetry import CyclicWarning
from finsler_ext.plot import plot_map, plot_profile

rng = np.random.default_rng(0)
layers = np.array(["1 sensory", "2 first relay", "3 second relay", "4 motor"])
layer = np.repeat(np.arange(4), 75)
ahead = layer[None, :] - layer[:, None]  # how many layers a synapse leads on
rate = np.select([ahead == 1, ahead == 0, ahead == -1], [0.6, 0.25, 0.05], 0.01)
synapses = rng.poisson(rate * rng.gamma(0.5, 2.0, size=rate.shape))
np.fill_diagonal(synapses, 0)
print(f"{np.count_nonzero(synapses)} connections between {len(layer)} neurons")

# %%
# `read_directed` is told that the numbers are strengths: many synapses mean near, not far.
# Counts of single connections are noisy. ``gradient_share_`` says that a height can show a third of
# their asymmetry; `fit` warns of that, and the warning is silenced here because we have read it.

warnings.simplefilter("ignore", CyclicWarning)
data = read_directed(scipy.sparse.csr_matrix(synapses.astype(float)), values="strength")
model = FinslerUMAP(metric="precomputed", omega_norm=0.9, random_state=0).fit(data)
print(f"share of the asymmetry that a height can show: {model.gradient_share_:.2f}")
for name, height in zip(
    layers, (model.embedding_[layer == c, 2].mean() for c in range(4)), strict=True
):
    print(f"mean height of {name}: {height:+.2f}")

# %%
# Edges lead downhill: the sensory neurons lie highest, the motor neurons lowest.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_map(model, color=layers[layer], ax=left)
plot_profile(model, color=layers[layer], ax=right)
