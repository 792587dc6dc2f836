"""
Handwritten digits
==================

`FinslerUMAP` in place of ``umap.UMAP``: the map shows the ten digits, and the height shows where
they vary most. Sparse regions (digits that people write in many ways) lie above dense ones.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from finsler_ext import FinslerUMAP
from finsler_ext.plot import plot_map, plot_profile

X, digit = load_digits(return_X_y=True)
model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
print(model.evidence_)

# %%
# The same map twice: coloured by the digit, and coloured by the height. The title is the verdict on
# the height.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_map(model, color=digit, label="digit", ax=left)
plot_map(model, ax=right)

# %%
# The height against the local scale, which is the mean distance of a digit to its neighbours.

plot_profile(model, "local_scale", color=digit, label="digit")
