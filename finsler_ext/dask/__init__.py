"""Data larger than memory, and more than one machine: fit and transform Dask collections.

``fit(model, X)`` finds neighbours by blocks on the cluster and lays the graph out on this machine;
``transform(model, X)`` is lazy and by blocks. ``model.fit(X)`` and ``model.transform(X)`` of a Dask
array or data frame come here. Without a `distributed.Client`, Dask's own scheduler does the work.

cluster.py     a collection as blocks of rows; tasks on a cluster, and what is said when it is lost
neighbors.py   nearest neighbours by parts, the same for any chunks and any number of workers
estimators.py  which rows a model is fitted to, the fit, and transform by blocks
files.py       parquet and zarr, in and out
"""

from finsler_ext.dask.cluster import ClusterError
from finsler_ext.dask.estimators import fit, transform

__all__ = ["ClusterError", "fit", "transform"]
