"""Pictures of a Finsler embedding. Needs matplotlib and plotly (extra ``plot``).

Pictures of more than 100,000 points need datashader (extra ``large``).

Every function but `plot_explanation` takes a fitted estimator, an array of shape (n, m) or a
DataFrame, map columns first and the height last.
"""

from finsler_ext.plot.asymmetry import plot_asymmetry, plot_drift
from finsler_ext.plot.explain import plot_explanation
from finsler_ext.plot.explore import explore
from finsler_ext.plot.views import plot_3d, plot_map, plot_profile

__all__ = [
    "explore",
    "plot_3d",
    "plot_asymmetry",
    "plot_drift",
    "plot_explanation",
    "plot_map",
    "plot_profile",
]
