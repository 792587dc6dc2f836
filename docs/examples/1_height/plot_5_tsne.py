"""
t-SNE with a height
===================

`FinslerTSNE` in place of ``openTSNE.TSNE``. With a held height, the default, the map is that of
t-SNE in two columns. The height is added to it and hardly changes it.
"""

import numpy as np
from sklearn.datasets import load_digits

from finsler_ext import FinslerTSNE
from finsler_ext.plot import plot_3d, plot_map

X, digit = load_digits(return_X_y=True)
X, digit = X[:800], digit[:800]
model = FinslerTSNE(omega_norm=0.5, random_state=0).fit(X)
other = FinslerTSNE(omega_norm=0.9, random_state=0).fit(X)
print(model.evidence_)
one, two = (np.asarray(m.embedding_)[:, :2] for m in (model, other))
moved = np.linalg.norm(one - two, axis=1).max() / np.sqrt(one.var(axis=0).sum())
print(f"from drift 0.5 to 0.9 the map moves by at most {moved:.2%} of its spread")

plot_map(model)

# %%
# Seen from the side.

plot_3d(model, color=digit, label="digit")
