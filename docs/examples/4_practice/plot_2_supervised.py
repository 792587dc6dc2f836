"""
Supervised maps
===============

As in umap-learn, ``fit(X, y)`` uses labels, here those of half of the wines. Unknown labels are −1.
The direction of the neighbourhoods is kept.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from finsler_ext import FinslerUMAP
from finsler_ext.plot import plot_map

X, kind = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
known = np.where(np.random.default_rng(0).uniform(size=len(kind)) < 0.5, kind, -1)

unsupervised = FinslerUMAP(random_state=0).fit(X)
supervised = FinslerUMAP(random_state=0).fit(X, known)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_map(unsupervised, color=kind, label="wine", ax=left)
plot_map(supervised, color=kind, label="wine", ax=right)
left.set_xlabel("without labels")
right.set_xlabel("with half of the labels")
