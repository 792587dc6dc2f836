"""
The drift chosen by the data
============================

``omega_norm``, the drift, is how much more it costs to go up than to come down: the larger, the
more the height shows. With ``"auto"``, `FinslerUMAP` and `FinslerTSNE` try 0.3, 0.5, 0.7 and 0.9,
and take the largest that keeps 90 % of the neighbours.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from finsler_ext import FinslerUMAP

X, digit = load_digits(return_X_y=True)
X = X[:1000]
model = FinslerUMAP(omega_norm="auto", random_state=0).fit(X)
print(model.omega_norm_)
print(model.drift_choice_.reason)

# %%
# Every trial is kept: the share of neighbours it keeps, and the share of pairs in the right order.

trials = model.drift_choice_.trials
for trial in trials:
    print(trial)

# %%
# How well the height fits the data it was made from, for fixed drifts.

drifts = [0.01, 0.1, 0.3, 0.5, 0.7, 0.9]
signs = [
    FinslerUMAP(omega_norm=drift, random_state=0).fit(X).skew_fidelity_.sign for drift in drifts
]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(drifts, signs, "o-")
ax.axhline(0.5, color="0.5", linestyle="--")
ax.axvline(model.omega_norm_, color="C1", label="chosen by auto")
ax.set(xlabel="omega_norm", ylabel="share of pairs of the data in order")
ax.legend()
