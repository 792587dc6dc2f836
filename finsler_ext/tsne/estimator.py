"""FinslerTSNE: openTSNE.TSNE without the averaging, in a space that can show the direction.

The steps of a fit are those of `finsler_ext.tsne.opentsne.OpenFinslerTSNE`; here are its face for
scikit-learn and the placing of new points.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from openTSNE.initialization import median
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from finsler_ext import schema
from finsler_ext._threads import plain_interrupt
from finsler_ext.base import fit_collection, is_collection, transform_collection
from finsler_ext.directed.read import check_row_names, named_output
from finsler_ext.height.acts import FREE, NESTED, height_share
from finsler_ext.scales import checked_new_scale, log_level
from finsler_ext.tsne.opentsne import FITTED, PARAMETERS, OpenFinslerTSNE, check_fitted
from finsler_ext.tsne.optimizer import forget_edges
from finsler_ext.validation import refuse_one_way, refuse_placeless

# New points start from the median of so many neighbours, openTSNE's figure.
START_NEIGHBORS = 25
# Of `transform`.
TRANSFORM = {
    "perplexity": schema.NONE | PARAMETERS["perplexity"],
    "n_iter": PARAMETERS["n_iter"],
    "learning_rate": PARAMETERS["learning_rate"],
    "exaggeration": PARAMETERS["exaggeration"],
    "momentum": PARAMETERS["final_momentum"],
    "max_grad_norm": PARAMETERS["max_grad_norm"],
}


@schema.saved({**PARAMETERS, **FITTED}, relations=check_fitted)
class FinslerTSNE(TransformerMixin, OpenFinslerTSNE):
    """t-SNE with a height: a last column that shows density or, for directed data, direction.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ p_ij ln(p_ij/q_ij),   q_ij = (1 + F_ij²/ν)^{−(ν+1)/2} / Z,
        F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where p_ij = p_{j|i}/N is the affinity of i to j, by i's own scale, and is not averaged
    with p_ji. F is the distance of a canonical Randers space: going up costs more than coming
    down. The first columns of the embedding are the usual map; the last, the height, shows the
    asymmetry of p: points in sparse regions, or costly to reach, lie higher. omega_norm=0 is
    Euclidean t-SNE with a gradient that is right for every ν.

    This class follows scikit-learn; `finsler_ext.tsne.opentsne.OpenFinslerTSNE` is the
    same with openTSNE's interface. All parameters of `openTSNE.TSNE` keep their names and, except
    for ``n_components`` and ``dof``, their meanings. New or different:

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height. With 2, one of the two columns is
        the height; for two columns of map leave it at 3, and see ``output``. With more than three
        the repulsion is summed over all pairs, which is refused for large data.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift: how much more it costs to go up than to come down. The smaller, the
        less the height shows: see ``skew_fidelity_``. 0 is Euclidean, without a height. "auto"
        takes the largest of 0.3, 0.5, 0.7, 0.9 at which all columns together keep at least 90 % of
        the neighbours that the layout kept before the drift acted, and 0 where the asymmetry of the
        data is no more than chance, by ``evidence_``. Its trials share affinities, start and map.
    height : {"auto", "potential", "held", "nested", "free"}, default="auto"
        What the last column is. In all modes but "free" the map settles first, as t-SNE in one
        column fewer and in as many iterations; then the height rises from ``potential_``, times a
        positive factor that gives the lowest loss, in at most 100 further iterations.

        - "potential": it stays there, and the map stays as it is. Its order does not depend on the
          drift. "auto" takes it for directed data.
        - "held": the larger the drift, the less it moves. Below ω = 0.1 it is one more map column,
          from 0.3 on it is close to the potential, with no jump in between. "auto" takes it for
          features in three or more columns.
        - "nested": it moves freely at every drift, and the map moves a little with it. The map
          keeps nearly the neighbours of t-SNE with one column fewer, all columns together nearly
          those of t-SNE in as many.
        - "free": all columns descend together, with the drift from the first iteration, as in the
          paper. At the end the layout is rotated so that the best direction of the drift is the
          last column; map columns are ordered by their spread, each with its largest entry
          positive. "auto" takes it for features in two columns.

        Without a drift, "potential" and "held" are "nested". ``height_`` says which it was.
    space : {"randers", "matsumoto"} or Space, default="randers"
        How the embedding measures distances; see `finsler_ext.geometry`. In the Matsumoto space,
        F = ‖u‖²/(‖u‖ − ω u_m), ``omega_norm`` is below ½, and the repulsion is summed over
        all pairs.
    ridge : float or "auto", default=0.0
        For digraphs: shrinks ``potential_``, and a height that follows it, towards zero where
        nodes have few edges; a multiple of the mean degree. 0 is best for the order of distant
        nodes, "auto" for the direction of edges held out (`finsler_ext.metrics.potential`).
    output : {"all", "map"}, default="all"
        What `transform` and `fit_transform` return: all columns, or those of the map alone, one
        fewer than ``n_components``. ``embedding_`` has all columns.
    affinity : {"directed", "harmonic", "symmetrized"}, default="directed"
        Affinities as above, or one of two symmetric controls: one scale per edge, the harmonic
        mean of both ends; or openTSNE's own average.
    geodesic_neighbors : int, optional
        Extend the neighbours of each point to this many (itself included) along directed
        shortest paths, before scales are fitted.
    local_scale : array of shape (n_samples,), optional
        Positive scale of each point as a source, in place of the one fitted to density; only
        ratios matter. Asymmetry then comes from this feature, as far as it differs between
        neighbours.
    dof : float, default=1
        ν of the kernel. openTSNE's kernel is (1 + d²/a)^{−a}: its dof a is our ν = 2a − 1, on a
        layout larger by √(2ν/(ν+1)).
    theta : float, default=0.5
        Opening angle of Barnes–Hut. Cells carry second moments here: at 0.5 the repulsion is
        within 0.5 % of the sum over all pairs. With two columns 0.8 of it is used.
    negative_gradient_method : {"auto", "exact", "bh", "fft"} or callable, default="auto"
        How the repulsion is summed: over all pairs, by Barnes–Hut in up to three dimensions,
        or on a grid in one or two. "auto" takes what is fastest for this number of points and
        columns, as measured; ``verbose`` says which. Single steps of "fft" whose layout is too
        wide for a grid, because of outliers for example, and `transform` are computed by "bh".
    n_interpolation_points, ints_in_interval : int and float, default=3 and 1
        The spacing of the grid's nodes is 0.75 ints_in_interval/n_interpolation_points kernel
        lengths (√ν for ν ≤ 1, and 1/(1 + ω) of that along the height), two thirds of that
        under exaggeration. Between nodes the kernel is a quintic spline, not a polynomial of its
        own in every interval. At the defaults the repulsion is within 0.5 % of the sum over all
        pairs.
    min_num_intervals : int, default=50
        Small layouts have closer nodes: at least this many along the longer side.
    initialization : str or array of m − 1 or m columns
        The start. An array of m − 1 columns is the map. An array of m columns is map and height;
        the height is free then, and the frame stays as it is.
    callbacks : callable or list of callables
        As in openTSNE. While the map settles they see its columns alone, and positions in the
        frame of that moment: a free layout may be rotated later.
    metric : str or callable
        As in openTSNE; with "precomputed", X[i, j] is the distance from i to j: a matrix, a
        frame, a graph, an edge list (see `finsler_ext.read_directed`). Directed data keeps its
        direction; pairs that are nan, inf or absent are no neighbours.
    n_jobs : int, default=-1
    random_state : int, RandomState or None
        With an int, the result is the same for any ``n_jobs``.

    Attributes
    ----------
    embedding_ : TSNEEmbedding of shape (n_samples, n_components)
        Map columns first, height last; centred.
    affinities_ : Affinities
        ``affinities_.P`` holds the directed affinities, rows being sources.
    kl_divergence_ : float
    height_ : "potential", "held", "nested" or "free"
        How the height was laid out.
    islands_ : Islands
        Whether heights compare across the gaps of the map, and how they follow the scale.
    omega_norm_ : float
    drift_choice_ : DriftChoice
        Only with omega_norm="auto": the drift chosen, why, and what was tried.
    local_scale_ : array of shape (n_samples,) or None
        Mean distance to the neighbours, or the scale given.
    asymmetry_ : Asymmetry
        The asymmetry of the data: its kind, and the pairs it is known for.
    potential_ : array of shape (n_samples,)
        One number per point that follows from the data alone, whatever the drift and the map: for
        a digraph its SpringRank (edges lead down), for directed distances how costly a point is
        to reach, for other data the log local scale. nan for isolated points.
    potential_component_ : array of shape (n_samples,)
        Potentials compare among points with the same number here; nothing connects the others.
        -1 if isolated.
    evidence_ : Evidence
        Whether the asymmetry of the data is more than chance, and how reliable it is;
        ``evidence_.verdict`` says so in words.
    height_error_, height_unsure_ : arrays of shape (n_samples,)
        Error of every height (± 1.645 errors are a 90 % interval), and whether the data leaves
        open if a point is above or below its neighbours.
    skew_fidelity_ : SkewFidelity
        How well the height fits the asymmetry it was made from. This is no evidence, because
        noise is fitted as well.
    density_height_ : float
        Spearman correlation between height and log local scale.
    gradient_share_ : float
        For directed distances: the share of their asymmetry (sum of squares over pairs known both
        ways) that any height can express; the rest is cyclic or noise. nan for other data.
    node_names_ : array of shape (n_samples,) or None
        Names of the points, where directed data has any.
    pinned_ : array of shape (n_samples, n_components) or None
        The places that were given, nan where free.

    Examples
    --------
    >>> from finsler_ext import FinslerTSNE
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerTSNE(omega_norm=0.5, n_iter=100, random_state=0).fit(X[:140])
    >>> model.embedding_.shape
    (140, 3)
    >>> model.transform(X[140:]).shape
    (10, 3)
    """

    def fit(self, X, y=None, *, affinities=None, initialization=None, pinned=None):
        """Fit X into an embedded space.

        If there is an error, or Ctrl-C and the model was fitted before, the model stays as it was.
        After Ctrl-C in a first fit, ``embedding_`` is what was reached.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            directed distances if ``metric="precomputed"``; None if ``affinities`` are given
        y : ignored
        affinities : openTSNE.affinity.Affinities, optional
            In place of those that the parameters describe; `P` may be directed.
        initialization : array, optional
            In place of the parameter of the same name.
        pinned : array or DataFrame of m − 1 (map) or m columns, optional
            Places that are given, nan for what is free: one row per row of X, or, of a DataFrame
            by names, rows for some of the nodes. They are kept bit for bit, and the others are
            laid out around them. The frame is that of the pins: it is neither rotated nor
            centred.
        """
        if is_collection(X):
            given = {"affinities": affinities, "initialization": initialization}
            return fit_collection(self, X, **given, pinned=pinned)
        self._fit(X, affinities=affinities, initialization=initialization, pinned=pinned)
        return self

    def fit_transform(self, X, y=None, *, affinities=None, initialization=None, pinned=None):
        """Fit and return the embedding as a plain array."""
        self.fit(X, affinities=affinities, initialization=initialization, pinned=pinned)
        if is_collection(X):
            return self.transform(X)
        return named_output(self, self._returned(np.array(self.embedding_)))

    @plain_interrupt()
    def transform(
        self,
        X,
        *,
        perplexity=None,
        n_iter=250,
        learning_rate=0.1,
        exaggeration=1.5,
        momentum=0.8,
        max_grad_norm=0.25,
        local_scale=None,
        incoming=None,
    ):
        """Place new points among the fitted ones, which stay where they are.

        Every new point has out-edges to the fitted points by a scale of its own, in-edges from
        those that would count it among their neighbours, and an objective of its own: its place
        does not depend on the other rows of X. Its height starts from the potential of the data
        with the new point in it, where the fitted heights follow theirs, moves as little as theirs
        did, and stays within their range.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features), or (n_new, n_samples) distances
            from new to fitted points if ``metric="precomputed"``
        perplexity : float, optional
            Of the out-edges; that of the fit by default.
        n_iter, learning_rate, exaggeration, momentum, max_grad_norm
            Of the descent, as in openTSNE.
        local_scale : array of shape (n_new,)
            Scales of the new points, for a model that was fitted with ``local_scale``.
        incoming : array or sparse matrix of shape (n_new, n_samples)
            Distances from fitted to new points, for a model that was fitted to directed
            distances.

        Returns
        -------
        array of shape (n_new, n_components)
        """
        check_is_fitted(self, "embedding_")
        descent = {
            "n_iter": n_iter,
            "learning_rate": learning_rate,
            "exaggeration": exaggeration,
            "momentum": momentum,
            "max_grad_norm": max_grad_norm,
        }
        options = {"perplexity": perplexity, **descent}
        for name, value in options.items():
            TRANSFORM[name].check(name, value)
        if is_collection(X):
            others = {"local_scale": local_scale, "incoming": incoming}
            return transform_collection(self, X, options, **others)
        model = self._with_fitted_params()
        check_row_names(X, incoming)
        X = model._checked(X, reset=False)
        affinity_params = {} if perplexity is None else {"perplexity": perplexity}
        if model.local_scale is not None or local_scale is not None:
            fitted = model.local_scale is not None
            scale = checked_new_scale(local_scale, X.shape[0], fitted=fitted)
            affinity_params["local_scale"] = scale
        if model._is_precomputed:
            X = model._both_directions(X, incoming)
        elif incoming is not None:
            raise ValueError("incoming is for metric='precomputed'; other metrics give it.")
        P, near, distances = model.affinities_.to_new(X, return_distances=True, **affinity_params)
        start = median(self.embedding_, near[:, :START_NEIGHBORS])
        law = model._new_heights(X, P, distances, local_scale, perplexity)
        start[:, -1] = np.where(np.isfinite(law), law, start[:, -1])
        share = height_share(self.height_, self.omega_norm_)
        placed = self.embedding_.partial(start, P, share)
        try:
            placed.optimize(max_step_norm=None, inplace=True, **descent)
        finally:
            forget_edges(placed.gradient_descent_params["negative_gradient_method"])
        return self._returned(np.array(placed))

    def _new_heights(self, X, P, distances, local_scale, perplexity):
        """Heights of new points by the law of the fit, h = β φ + constant; nan if there is none.

        φ is the potential of the data with the new point in it.
        """
        slope, n = self.islands_.slope, len(self.potential_)
        if self.height_ in (FREE, NESTED) or not np.isfinite(slope) or P.shape[1] != 2 * n:
            return np.nan
        both = scipy.sparse.csr_array(P)
        out, into = both[:, :n], both[:, n:]
        edges = scipy.sparse.coo_array(out + into)
        new, old = edges.coords
        if not self.asymmetry_.is_directed:
            if local_scale is None:
                if perplexity is not None or self.geodesic_neighbors is not None:
                    return np.nan  # the neighbours are others than those of the fit
                local_scale = np.asarray(distances, dtype=np.float64).mean(axis=1)
            rise = log_level(local_scale)[new] - self.potential_[old]
        elif self._directed_distances and not self._strengths_given:
            with np.errstate(invalid="ignore"):
                rise = np.asarray(X[new, old + n]).ravel() - np.asarray(X[new, old]).ravel()
            if scipy.sparse.issparse(X):  # what is not stored is not known
                stored = scipy.sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), X.shape)
                for at in (old, old + n):
                    rise[np.asarray(stored[new, at]).ravel() == 0] = np.nan
        else:
            total = np.asarray(both.sum(axis=1)).ravel()
            net = np.asarray((out - into).sum(axis=1)).ravel()
            rise = (net / np.where(total > 0, total, 1))[new]
        height = np.asarray(self.embedding_)[old, -1] + slope * rise
        weight = np.where(np.isfinite(height), edges.data, 0.0)
        total = np.bincount(new, weight, P.shape[0])
        height = np.bincount(new, weight * np.nan_to_num(height), P.shape[0])
        return np.divide(height, total, out=np.full(P.shape[0], np.nan), where=total > 0)

    def _both_directions(self, X, incoming):
        """Distances to the fitted points and, in as many further columns, from them."""
        if incoming is None:
            if self._directed_distances:
                refuse_one_way()
            refuse_placeless(X, X)
            return X
        incoming = self._checked(incoming, reset=False)
        sparse = scipy.sparse.issparse(X)
        if incoming.shape != X.shape or scipy.sparse.issparse(incoming) != sparse:
            raise ValueError(
                f"incoming must have the shape of X, {X.shape}, and be sparse where X is; got "
                f"shape {incoming.shape}."
            )
        refuse_placeless(X, incoming)
        stack = scipy.sparse.hstack if sparse else np.hstack
        both = stack([X, incoming])
        return scipy.sparse.csr_matrix(both) if sparse else both

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.allow_nan = self._is_precomputed  # pairs that are not known
        tags.input_tags.positive_only = self._is_precomputed
        return tags
