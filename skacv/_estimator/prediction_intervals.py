"""Prediction intervals at any iterate, from what the run has held out."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from .._compat import check_in_memory
from ..optim.namespaces import dtype_of, here, rows_in
from ..risk.intervals import (
    around_predictions,
    checked_coverage,
    ends_of,
    jackknife_plus,
    rank_of,
)
from .following import of_rows
from .left_out import coefficients_without_rows, kept_run
from .readers import ESTIMATES

# Memory for the predictions of all replicas of a block of samples.
BLOCK_BYTES = 1 << 27
# Sizes of residuals are averages over so many rows at least, of trees that see so many
# at most. Fewer would be noisier, more would take longer.
ROWS_PER_LEAF, ROWS_PER_TREE = 20, 2000
# A size is no less than that share of the mean: a ratio to one near zero would be huge.
SMALLEST_SIZE = 0.1
# In so many folds the rows are, of which others say how large residuals are in one.
SIZE_FOLDS = 5


class PredictsIntervals:
    """Prediction intervals of a regressor's iterates."""

    @of_rows
    def predict_interval(self, X, coverage=0.9, method="auto"):
        """Prediction intervals of the iterate in use, from the one run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Nominal probability that an interval contains the target of an unseen row;
            with several there is an interval for each.
        method : {"auto", "jackknife+", "loo", "cv", "risk", "scaled"}, default="auto"
            "auto": the first of the next four for which the fit has computed what it
            needs, in this order. "jackknife+": quantiles over the held-out rows of the
            prediction without the row, plus and minus its held-out residual [1]_; the
            runs without each row are repeated up to the iterate in use, which needs
            ``keep_data=True``.
            "loo": the prediction plus and minus a quantile of the held-out residuals.
            "cv": the same with the residuals of rows held out in folds; runs on fewer
            rows make these somewhat too large, and a row that several folds hold out
            counts each time. "risk": the same with the residuals of
            the memory matrix. "scaled": widths that follow the row, from the residuals
            of the first of "loo", "cv" and "risk" that there is, which needs
            ``keep_data=True``. Each residual is divided by s(x), the size that is
            expected at its row, and the quantile is multiplied by s(x) at a new row
            [2]_ [3]_. A random forest of the sizes of the held-out residuals gives
            s(x), at a held-out row one of rows in other folds.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y; with several coverages
            (n_samples, 2, n_coverages) or (n_samples, n_targets, 2, n_coverages).
            Rows have equal weights in the quantiles, also if they had other weights in
            fit. With a coverage below one half the ends of "jackknife+" may cross,
            which is an empty interval. Residuals of a Poisson model are divided by the
            root of the held-out prediction, widths are in proportion to the root of the
            prediction, and no end is below zero.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if the
            estimator was fitted without what the method needs.

        References
        ----------
        .. [1] Barber, Candes, Ramdas and Tibshirani (2021), "Predictive
               inference with the jackknife+", equation 1.5.
        .. [2] Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018),
               "Distribution-free predictive inference for regression", section 5.2.
        .. [3] Papadopoulos, Gammerman and Vovk (2008), "Normalized nonconformity
               measures for regression conformal prediction".

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(alpha=0.0, keep_data=True).fit(X, y)
        >>> best = model.at_iteration(model.loo_path_.argmin())
        >>> best.predict_interval(X[:3], coverage=0.8).shape
        (3, 2)
        >>> best.predict_interval(X[:3], coverage=[0.5, 0.8]).shape
        (3, 2, 2)
        """
        check_is_fitted(self)
        coverage = checked_coverage(coverage)
        methods = ["auto", *interval_methods(), "scaled"]
        if method not in methods:
            raise ValueError(f"method must be one of {methods}, got {method!r}.")
        check_in_memory(X)
        source = self._source_of(method)
        residuals, spread = self._relative_residuals(source)
        ranks = [rank_of(each, len(residuals)) for each in coverage.ravel()]
        if source == "jackknife+":
            ends = self._jackknife_plus(self._checked(X), residuals, ranks, spread)
        else:
            predictions = self.predict(X)
            widths = spread(predictions)
            if method == "scaled":
                held_out, sizes = self._expected_sizes(X, residuals, source)
                residuals, widths = residuals / held_out, widths * sizes
            ends = ends_of(around_predictions, predictions, residuals, ranks, widths)
        ends = np.clip(ends, *self._loss.target_range)
        # One coverage has no axis of its own.
        return ends.reshape(*ends.shape[:-1], *coverage.shape)

    def _source_of(self, method):
        """The method of the table that a method takes held-out residuals from."""
        if method == "auto":
            return self._first_of(interval_methods())
        if method == "scaled":
            return self._source_to_scale()
        return method

    def _source_to_scale(self):
        """The first method of the table whose residuals have rows of X, if kept."""
        located = [
            method
            for method, estimate in interval_methods().items()
            if method != "jackknife+" and hasattr(self, estimate.indices)
        ]
        missing = [] if located else ["loo=True (or cv=5)"]
        if self._data is None:
            missing.append("keep_data=True")
        elif getattr(self, "X_fit_", self._data) is None:
            missing.append("a kernel that takes rows, and is not precomputed")
        if missing:
            raise ValueError(
                "method='scaled' needs an estimator fitted with "
                f"{' and '.join(missing)}."
            )
        return self._first_of(located)

    def _relative_residuals(self, method):
        """Held-out residuals over the spread that the loss says of their targets.

        Returns
        -------
        residuals : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
        spread : callable
            That of predictions.
        """
        residuals = self._held_out_residuals(method)
        estimate = interval_methods()[method]
        if not hasattr(self, estimate.predictions):  # residuals alone say no mean
            return residuals, np.ones_like
        spread = self._loss.spread
        held_out = getattr(self, estimate.predictions)[self.iteration_]
        return residuals / spread(held_out), spread

    def _held_out_residuals(self, method):
        """What the method takes for residuals of rows left out, at this iterate.

        Targets less predictions, whatever the method.
        """
        methods = interval_methods()
        estimate = methods[method]
        estimate.check_offered(self, f"method={method!r}")
        if missing := self._missing_for(method):
            raise ValueError(
                f"method={method!r} needs an estimator fitted with "
                f"{' and '.join(missing)}; methods are {', '.join(map(repr, methods))}."
            )
        return estimate.residuals(self, self.iteration_)

    def _first_of(self, methods):
        """The first of some methods of the table for which there is what it needs."""
        table = interval_methods()
        for method in methods:
            needed = table[method].residuals_from or table[method].path
            if hasattr(self, needed) and not self._missing_for(method):
                return method
        raise ValueError(
            f"Intervals need held-out residuals, and this {type(self).__name__} was "
            "fitted without any: fit it with loo=True or cv=5."
        )

    def _missing_for(self, method):
        """The settings of fit that a method needs and that were not there."""
        estimate, missing = interval_methods()[method], []
        if not hasattr(self, estimate.path):
            missing.append(f"{estimate.parameter}={estimate.switched_on}")
        if method == "jackknife+" and self._data is None:
            missing.append("keep_data=True")
        return missing

    def _expected_sizes(self, X, residuals, method):
        """How large residuals are expected: those of held-out rows, and at rows of X.

        Returns
        -------
        held_out : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
        sizes : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        samples = np.hstack(getattr(self, interval_methods()[method].indices))
        rows, X = self._on_kept_columns(samples, X)
        settings = {"seed": self._seed, "n_jobs": self.n_jobs}
        targets = residuals.reshape(len(residuals), -1).T
        held_out = [held_out_sizes(rows, own, samples, **settings) for own in targets]
        sizes = [fitted_sizes(rows, own, **settings)(X) for own in targets]
        return (
            np.stack(found, axis=1).reshape(-1, *residuals.shape[1:])
            for found in (held_out, sizes)
        )

    def _on_kept_columns(self, samples, X):
        """Some rows of fit and those of X, on the columns that fit has kept."""
        X, data = here(self._checked(X)), self._data
        design = data.observed.design
        if design is None:  # kernel machines put it away, and keep rows as passed
            return here(rows_in(self.X_fit_, samples)), X
        kept_run(self, self.iteration_)  # which notices what was changed in place
        rows = here(rows_in(design.X, data.places_of(samples)))
        # A last column may be that of the intercept.
        return rows[:, : self.n_features_in_], data.columns.applied(X)

    def _jackknife_plus(self, X, residuals, ranks, spread):
        """Ends for every rank, (n_samples, 2, n_ranks) or for several targets."""
        size = max(1, BLOCK_BYTES // (dtype_of(X).itemsize * len(residuals)))
        ends = []
        for replicas, own_residuals in zip(
            self._without_rows(), residuals.reshape(len(residuals), -1).T
        ):
            predictions = (
                self._predicted(replicas, X[block, :])
                for block in gen_batches(X.shape[0], size)
            )
            blocks = [
                ends_of(jackknife_plus, found, own_residuals, ranks, spread(found))
                for found in predictions
            ]
            ends.append(np.concatenate(blocks))
        return np.stack(ends, axis=1) if residuals.ndim > 1 else ends[0]

    def _without_rows(self):
        """Coefficients and intercepts without each held-out row, for every target.

        Those of the iterate in use, run again once and then kept.
        """
        if self._replicas is None or self._replicas[0] != self.iteration_:
            self._replicas = self.iteration_, list(self._run_without_rows())
        return self._replicas[1]

    def _run_without_rows(self):
        """The replicas without each held-out row, run again, target by target."""
        return coefficients_without_rows(self)


def interval_methods():
    """The estimate that every method of intervals takes held-out residuals from.

    In the order in which "auto" prefers them: those that assume least come first.
    """
    own = {name: estimate for name, estimate in ESTIMATES.items() if estimate.residuals}
    known = {name: own.pop(name) for name in ("loo", "cv", "risk") if name in own}
    first = {"jackknife+": known["loo"]} if "loo" in known else {}
    return first | known | own


def fitted_sizes(X, residuals, seed, n_jobs=None):
    """How large residuals are expected to be, given a row: a forest of their sizes.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    residuals : ndarray of shape (n_rows,)
    seed : int
    n_jobs : int, default=None

    Returns
    -------
    callable
        It takes rows, and gives positive numbers.
    """
    size = np.abs(residuals)
    # Where no residual is other than zero any size will do.
    floor = SMALLEST_SIZE * size.mean() or 1.0
    forest = RandomForestRegressor(
        min_samples_leaf=ROWS_PER_LEAF,
        max_samples=min(len(size), ROWS_PER_TREE),
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(X, size)
    return lambda rows: np.maximum(forest.predict(rows), floor).astype(size.dtype)


def held_out_sizes(X, residuals, samples, seed, n_jobs=None):
    """The same at the rows themselves, each from the residuals of others.

    Parameters
    ----------
    X, residuals, seed, n_jobs
        As in :func:`fitted_sizes`.
    samples : ndarray of int, shape (n_rows,)
        Which sample each row is: rows of one sample are held out together.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    distinct, place = np.unique(samples, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError("method='scaled' needs at least 2 rows held out.")
    order = np.random.RandomState(seed).permutation(len(distinct))
    fold = order[place] % min(SIZE_FOLDS, len(distinct))
    found = np.empty_like(residuals)
    for own in (fold == k for k in range(fold.max() + 1)):
        sizes = fitted_sizes(X[~own], residuals[~own], seed, n_jobs)
        found[own] = sizes(X[own])
    return found
