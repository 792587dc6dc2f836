"""
How sure is the height?
=======================

A uniform sphere beside the digits. Both heights put nine of ten pairs of the data they were made
from in the right order. Only one of them means something.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from finsler_ext import FinslerUMAP
from finsler_ext.plot import plot_asymmetry, plot_map

points = np.random.default_rng(0).normal(size=(1000, 3))
sphere = points / np.linalg.norm(points, axis=1, keepdims=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # fit warns that the sphere's height is chance
    models = {
        "1000 points drawn uniformly from a sphere": FinslerUMAP(random_state=0).fit(sphere),
        "scikit-learn's digits": FinslerUMAP(random_state=0).fit(load_digits().data),
    }
for name, model in models.items():
    print(name, model.evidence_, model.skew_fidelity_, sep="\n  ")

# %%
# Above, the maps; points are pale if they may be above or below their neighbours. Below, pairs of
# neighbours: their difference in one half of the data against that in the other half. Chance gives
# a round cloud.
figure, axes = plt.subplots(2, 2, figsize=(10.5, 9), layout="constrained")
for (name, model), (above, below) in zip(models.items(), axes.T, strict=True):
    plot_map(model, ax=above)
    above.set_title(f"{name}\n{above.get_title()}", fontsize="medium")
    plot_asymmetry(model, held_out=True, ax=below).set_title("pairs of neighbours, held out")
plt.show()
