"""Neighbour searches behind one protocol, `NeighborIndex`, chosen by name.

search.py        what every search offers, the searches by name, and the rule that chooses one
exact.py         all pairs; `distances.py` compares blocks of dense rows, `metrics.py` any metric
kmeans_graph.py  large dense data: k-means, then neighbours of neighbours
nndescent.py     pynndescent
precomputed.py   directed distances that are given
geodesics.py     shortest paths over neighbours
transform.py     neighbours of new points along geodesics, and training points among them
"""
