"""
Flights of four days
====================

Median minutes in the air between US airports, 1–4 January 2015, for every direct connection. The
table is an edge list with the columns ``from``, ``to`` and ``minutes`` (US Bureau of Transportation
Statistics; public domain). Where there is no direct flight, ``missing="geodesic"`` takes the
shortest way.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from finsler_ext import FinslerMDS
from finsler_ext.plot import plot_asymmetry

flights = pd.read_csv("flights_us_2015jan.csv")
print(flights.head(3))

model = FinslerMDS(
    n_components=2, metric="precomputed", omega_norm="auto", missing="geodesic", random_state=0
).fit(flights)
print(f"{len(model.node_names_)} airports, drift {model.omega_norm_:.3f}")
print(model.evidence_)

# %%
# The height is one of the two columns. Flying west takes longer, so west lies high; it is drawn to
# the left here. The other column is north or south; its sign is arbitrary and set by Miami.

place = dict(zip(model.node_names_, model.embedding_, strict=True))
south = np.sign(place["MIA"][0])
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
dots = ax.scatter(
    -model.embedding_[:, 1], -south * model.embedding_[:, 0], c=model.embedding_[:, 1], s=14
)
figure.colorbar(dots, ax=ax, label="height (minutes): costly to reach is high")
for name in ("SEA", "SFO", "DEN", "DFW", "MSP", "ATL", "MIA", "BOS"):
    across, along = place[name]
    ax.annotate(name, (-along, -south * across), fontweight="bold", ha="center", va="bottom")
share = model.skew_fidelity_.sign
ax.set_title(f"the height orders {share:.0%} of the pairs it was made from")
ax.set(xticks=[], yticks=[], aspect="equal")

# %%
# The minutes there minus the minutes back, as flown and as embedded.

plot_asymmetry(model)
