"""
New points
==========

``transform`` places new rows in a fitted map. The fitted points stay where they are, and the place
of a new row does not depend on the other new rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from finsler_ext import FinslerUMAP

X, digit = load_digits(return_X_y=True)
X, X_new, digit, digit_new = train_test_split(X, digit, test_size=0.2, random_state=0)

model = FinslerUMAP(random_state=0).fit(X)
new = model.transform(X_new)
alone = model.transform(X_new[:1])
print("the same place alone and together:", np.array_equal(alone[0], new[0]))

classifier = KNeighborsClassifier(5).fit(model.embedding_, digit)
print(
    f"new digits named by their neighbours in the embedding: {classifier.score(new, digit_new):.1%}"
)

# %%
# Grey: fitted points. Coloured: new points, by their digit.

figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
ax.scatter(*model.embedding_[:, :2].T, s=6, color="0.8")
dots = ax.scatter(*new[:, :2].T, c=digit_new, s=14, cmap="tab10", vmin=-0.5, vmax=9.5)
figure.colorbar(dots, ax=ax, label="digit", ticks=range(10))
ax.set(xticks=[], yticks=[], aspect="equal")
