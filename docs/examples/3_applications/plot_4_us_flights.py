"""
Wind over the United States
===========================

Where is the wind, if all you have is flying times? The data are median minutes in the air between
US airports, 1–4 January 2015, for every direct connection (US Bureau of Transportation Statistics;
public domain). The table has the columns ``from``, ``to`` and ``minutes``; where there is no direct
flight, ``missing="geodesic"`` takes the shortest way. The model does not know where the airports
are.

Files: :download:`flights_us_2015jan.csv </examples/3_applications/flights_us_2015jan.csv>`,
:download:`airports_us.csv </examples/3_applications/airports_us.csv>`. In a clone,
``pip install '.[plot]' pandas`` is enough.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patheffects import withStroke
from scipy.sparse import coo_array
from scipy.stats import spearmanr

from finsler_ext import FinslerMDS, read_directed
from finsler_ext.drift_field import fit_drift_field

flights = pd.read_csv("flights_us_2015jan.csv")
airports = pd.read_csv("airports_us.csv", index_col="airport")
model = FinslerMDS(
    n_components=2, metric="precomputed", omega_norm="auto", missing="geodesic", random_state=0
).fit(flights)
place = airports.loc[[str(name) for name in model.node_names_]]
# D_ij − D_ji = 2 ω (h_j − h_i): in these units, minutes longer to reach than to leave
height, error = (2 * model.omega_norm_ * a for a in (model.embedding_[:, 1], model.height_error_))
print(f"{len(place)} airports, drift {model.omega_norm_:.3f}")
print(model.evidence_)
west = spearmanr(height, -place.longitude).statistic
print(f"rank correlation of the height with degrees west: {west:.2f}")
print(f"median error of a height: {np.median(error):.1f} minutes")

# %%
# Times twice the drift, the height says how many minutes longer it takes to reach an airport than
# to leave it, on average over the others. A drift field, fitted over the true places, shows in
# which direction flying takes less time. It is judged on pairs of airports that it was not fitted
# to, and compared with one drift for the whole country.

flat = np.column_stack([place.longitude * np.cos(np.radians(39)), place.latitude])
minutes = coo_array(read_directed(flights).distances)
field = fit_drift_field(flat, distances=minutes)
print(field.verdict)

# %%
# How sure is an arrow? The field is fitted again to connections drawn at random, twenty times. An
# arrow is pale if it turns by more than 45° in any of these draws. In the west most arrows are
# sure: on these days the cheaper way there led south and east, not only east.

grid = np.stack(np.meshgrid(np.arange(-94, -54, 4.0), np.arange(27, 49, 4.0)), axis=-1)
points = grid.reshape(-1, 2)
points = points[np.linalg.norm(points[:, None] - flat, axis=2).min(axis=1) < 2.5]


def cheaper(field):
    return -2 * field(points) / 1.11  # minutes per 100 km, as a degree has 111 km


def directions(arrows):
    return arrows / np.linalg.norm(arrows, axis=1, keepdims=True)


rng = np.random.default_rng(0)
ends = np.sort(minutes.coords, axis=0)
pair = np.unique(ends[0] * len(place) + ends[1], return_inverse=True)[1]
cosines = []
for _ in range(20):
    drawn = np.isin(pair, rng.integers(pair.max() + 1, size=pair.max() + 1))
    row, column = (end[drawn] for end in minutes.coords)
    some = coo_array((minutes.data[drawn], (row, column)), shape=minutes.shape)
    again = directions(cheaper(fit_drift_field(flat, distances=some)))
    cosines.append((again * directions(cheaper(field))).sum(axis=1))
sure = np.min(cosines, axis=0) > np.cos(np.pi / 4)
print(f"{sure.sum()} of {len(points)} arrows are sure")

plt.rcParams["font.size"] = 13
figure, ax = plt.subplots(figsize=(11, 5.8), layout="constrained")
dots = ax.scatter(*flat.T, c=height, s=42, cmap="viridis", edgecolors="0.4", linewidths=0.4)
figure.colorbar(dots, ax=ax, label="minutes longer to reach than to leave", shrink=0.9)
colors = np.where(sure, "0.3", "0.75")
arrows = ax.quiver(*points.T, *cheaper(field).T, color=colors, pivot="mid", width=0.003, zorder=0)
ax.quiverkey(arrows, 0.12, 0.07, 1.0, "1 minute less per 100 km than back", labelpos="E")
for name in ("SEA", "SFO", "LAX", "DEN", "DFW", "MSP", "ORD", "ATL", "MIA", "BOS", "JFK"):
    where = flat[place.index.get_loc(name)]
    halo = [withStroke(linewidth=3, foreground="white")]
    ax.annotate(name, where, (5, 5), textcoords="offset points", weight="bold", path_effects=halo)
ax.set(aspect="equal", xticks=[], yticks=[])
ax.set_title("281 US airports; arrows point where flying takes less time (pale: not sure)")

# %%
# Against other methods
# ---------------------
#
# Rank correlation of the order of the airports with degrees west, mean and range over five draws in
# which a tenth of the flights is left out (``python -m benchmarks.applications flights``):
#
# ========================== =================
# order                      rank correlation
# ========================== =================
# height of FinslerMDS       .957 (.95 to .97)
# slide-vector MDS           .964 (.96 to .97)
# radius-distance MDS        .890 (.87 to .90)
# potential of the minutes   .889 (.87 to .90)
# mean minutes in, less out  .655 (.65 to .67)
# ========================== =================
#
# A slide vector (Zielman and Heiser 1996) shifts all targets against all sources, and finds the
# same axis.
#
# **When this will mislead you.** Four days have one weather: this is the wind of that week, not of
# the year. Minutes between airports without a direct flight are sums over several flights. A height
# is one number per airport: it holds wind, and whatever else makes an airport slow to reach, such
# as queues in the air. Where direct flights are few, an arrow is an extrapolation, even if it is
# the same in every draw.
