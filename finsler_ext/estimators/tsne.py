"""FinslerTSNE: openTSNE.TSNE without the averaging, in a space that can show the direction."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from finsler_ext._collections import fit_collection, is_collection, transform_collection
from finsler_ext.construct.directed_input import (
    Opened,
    check_range,
    marked,
    named_output,
    opened,
    plain,
)
from finsler_ext.construct.gradient_share import gradient_share
from finsler_ext.construct.input import readable
from finsler_ext.construct.new_points import checked_new_scale, refuse_one_way
from finsler_ext.estimators import opentsne

__all__ = ["FinslerTSNE"]


class FinslerTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, opentsne.FinslerTSNE):
    """t-SNE on directed affinities, embedded in a canonical Randers space.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ p_ij ln(p_ij/q_ij),   q_ij = (1 + F_ij²/ν)^{−(ν+1)/2} / Z,
        F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where p_ij = p_{j|i}/N is the affinity of i to j, by i's own scale, and is not averaged
    with p_ji. The first columns of the embedding are the usual map; the last, the height, shows
    the asymmetry: points in sparse regions, or costly to reach, lie higher. omega_norm=0 is
    Euclidean t-SNE with a gradient that is right for every ν.

    This class follows scikit-learn; `finsler_ext.estimators.opentsne.FinslerTSNE` is the
    same in openTSNE's manner. All parameters of `openTSNE.TSNE` keep their names and
    meanings. New or different:

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height. With 2, one of the two columns is
        the height. More than three are summed over all pairs, and refused for large data.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift. The smaller the drift, the less the height shows: see
        ``skew_fidelity_``. "auto" takes the largest of 0.3, 0.5, 0.7, 0.9 at which all columns
        together keep at least 90 % of the neighbours that the layout kept before the drift acted
        (see `finsler_ext.drift`). Its trials share affinities, start and map.
    height : {"auto", "held", "free"}, default="auto"
        "held": the map is laid out first, as t-SNE in one column fewer, and stays; then the
        height rises over it, in 0.3 ``n_iter`` further iterations. So the map does not depend on
        the drift. "free": all columns are laid out together, then the drift finds its direction
        among them, and the layout is rotated so that this becomes the last column; map columns
        are ordered by their spread, each with its largest entry positive. "auto" is held with
        three or more columns and free with fewer. ``height_`` says which.
    space : {"randers", "matsumoto"} or Space, default="randers"
        How the embedding measures distances; see `finsler_ext.spaces`. In the Matsumoto space,
        F = ‖u‖²/(‖u‖ − ω u_m), ``omega_norm`` is below ½, and the repulsion is summed over
        all pairs.
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
        Small layouts have nodes closer together, at least so many along the longer side.
    initialization : str or array of m − 1 or m columns
        The start. An array of m − 1 columns is the map, and the height is held. An array of m
        columns is map and height; the height is free, and the frame stays as it is.
    callbacks : callable or list of callables
        As in openTSNE. While the height is held they see the map columns alone, and positions in
        the frame of that moment: a free layout may be rotated later.
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
    height_ : "held" or "free"
        How the height was laid out.
    islands_ : Islands
        Whether heights compare across the gaps of the map, and the law they follow.
    omega_norm_ : float
    drift_choice_ : DriftChoice
        Only with omega_norm="auto": the drift chosen, why, and what was tried.
    local_scale_ : array of shape (n_samples,) or None
        Mean distance to the neighbours, or the scale given.
    asymmetry_ : Asymmetry
        What the height is to show: where it comes from, and on which pairs.
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data.
    density_height_ : float
        Spearman correlation between height and log local scale.
    gradient_share_ : float
        Of directed distances: how much of their asymmetry (sum of squares over pairs known both
        ways) any height can express; the rest is cyclic or noise. nan for other data.
    node_names_ : array of shape (n_samples,) or None
        Names of the points, where directed data has any.

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

    def fit(self, X, y=None, *, affinities=None, initialization=None):
        """Fit X into an embedded space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            directed distances if ``metric="precomputed"``; None if ``affinities`` are given
        y : ignored
        affinities : openTSNE.affinity.Affinities, optional
            In place of those that the parameters describe; `P` may be directed.
        initialization : array, optional
            In place of the parameter of the same name.

        An error leaves the model as it was, and so does Ctrl-C if it was fitted before; otherwise
        ``embedding_`` is then what was reached.
        """
        if is_collection(X):
            return fit_collection(self, X, affinities=affinities, initialization=initialization)
        self._fit(X, affinities=affinities, initialization=initialization)
        return self

    def _validate(self, X, affinities=None, initialization=None) -> opentsne.Problem:
        data = Opened(None)
        if X is not None:
            data = opened(X, precomputed=self.metric == "precomputed")
            X = self._validated(data.X, reset=True)
        checked = super()._validate(X, affinities, initialization)
        data.name_points(self)
        return checked

    def _score(self, problem: opentsne.Problem, layout) -> None:
        directed = self._directed_distances
        self.gradient_share_ = gradient_share(problem.X) if directed else float("nan")
        super()._score(problem, layout)
        self._n_features_out = self.n_components

    def fit_transform(self, X, y=None, *, affinities=None, initialization=None):
        """Fit and return the embedding as a plain array."""
        self.fit(X, affinities=affinities, initialization=initialization)
        if is_collection(X):
            return self.transform(X)
        return named_output(self, np.array(self.embedding_))

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
        does not depend on the other rows of X.

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
        if is_collection(X):
            return transform_collection(
                self, X, perplexity=perplexity, local_scale=local_scale, incoming=incoming
            )
        X = self._validated(X, reset=False)
        affinity_params = {} if perplexity is None else {"perplexity": perplexity}
        if self.local_scale is not None or local_scale is not None:
            fitted = self.local_scale is not None
            scale = checked_new_scale(local_scale, X.shape[0], fitted=fitted)
            affinity_params["local_scale"] = scale
        if self.metric == "precomputed":
            X = self._both_directions(X, incoming)
        elif incoming is not None:
            raise ValueError("incoming is for metric='precomputed'; other metrics give it.")
        placed = self.embedding_.prepare_partial(X, **affinity_params)
        placed.optimize(
            n_iter=n_iter,
            learning_rate=learning_rate,
            exaggeration=exaggeration,
            momentum=momentum,
            max_grad_norm=max_grad_norm,
            max_step_norm=None,
            inplace=True,
        )
        return np.array(placed)

    def _both_directions(self, X, incoming):
        """Distances to the fitted points and, in as many further columns, from them."""
        if incoming is None:
            if self._directed_distances:
                refuse_one_way()
            return X
        incoming = self._validated(incoming, reset=False)
        sparse = scipy.sparse.issparse(X)
        if incoming.shape != X.shape or scipy.sparse.issparse(incoming) != sparse:
            raise ValueError(
                f"incoming must have the shape of X, {X.shape}, and be sparse where X is; got "
                f"shape {incoming.shape}."
            )
        stack = scipy.sparse.hstack if sparse else np.hstack
        both = stack([X, incoming])
        return scipy.sparse.csr_matrix(both) if sparse else both

    def _validated(self, X, *, reset: bool):
        pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        if pairwise:
            X = plain(X)
            check_range(X)
        X = validate_data(
            self,
            readable(X, missing=np.inf if pairwise else None),
            reset=reset,
            skip_check_array=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite=not pairwise,
        )
        return marked(X, np.inf, square=reset) if pairwise else X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags
