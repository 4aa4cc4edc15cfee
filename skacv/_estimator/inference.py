"""Intervals and tests of coefficients, along a recorded run."""

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..risk.inference.debiased import Debiased
from ..risk.inference.scores import scores_at_the_end
from .directions import by_covariance, nodewise
from .left_out import kept_run

# Residuals of so small a share of the target's are those of an interpolating iterate.
INTERPOLATES = 1e-3
# Columns whose entries differ by so small a share of their mean are constant.
CONSTANT = 1e-12


class DebiasesCoefficients:
    """The iterates of a linear model, debiased."""

    def _debiased(self, columns, iteration, covariance, X_unlabelled):
        """Places of the asked columns, and their coefficients as :class:`Debiased`."""
        check_is_fitted(self)
        if self._data is None:
            raise ValueError("Coefficients are debiased with keep_data=True only.")
        iterate = self if iteration is None else self.at_iteration(iteration)
        t = iterate.iteration_
        index = self._places_of_columns(columns)
        if self._data.problem.loss.is_coupled or len(getattr(self, "classes_", ())) > 2:
            raise ValueError("Coefficients of more than two classes are not debiased.")
        data, trajectory = self._data, kept_run(self, t)
        _check_debiasable(data.problem, trajectory)
        X = _features(data, self.n_features_in_, index)
        directions = _directions(X, index, covariance, X_unlabelled, self.fit_intercept)
        scores = self._scores(trajectory, t)
        coef = trajectory.coef[-1][index].astype(np.float64)
        return index, Debiased.of(coef, scores, directions)

    def _scores(self, trajectory, t):
        """What debiases iterate t, (n_rows, n_outputs)."""
        if not hasattr(self, "risk_path_"):
            raise ValueError("Coefficients are debiased with risk=True only.")
        if not hasattr(self, "risk_residual_path_"):
            rng = check_random_state(self.random_state)
            return scores_at_the_end(self._data.problem, trajectory, rng=rng)
        temporal, spatial = self.risk_residual_path_
        found = np.tensordot(temporal[t], spatial, axes=1)
        return found.reshape(len(found), -1)

    def _places_of_columns(self, columns):
        """The asked columns as an array of int.

        Raises
        ------
        ValueError
            If there is no such column, or names were not seen in fit.
        """
        n_features = self.n_features_in_
        if columns is None:
            return np.arange(n_features)
        columns = np.atleast_1d(np.asarray(columns))
        if columns.dtype == bool:
            if columns.shape != (n_features,):
                raise ValueError(
                    f"columns has {len(columns)} entries for {n_features} features."
                )
            return np.flatnonzero(columns)
        if columns.dtype.kind in "OU":
            names = list(getattr(self, "feature_names_in_", []))
            unknown = [name for name in columns if name not in names]
            if unknown:
                raise ValueError(f"There are no columns {unknown} in the X of fit.")
            return np.array([names.index(name) for name in columns])
        if ((columns < -n_features) | (columns >= n_features)).any():
            raise ValueError(
                f"columns must be below {n_features}, the features of fit, got "
                f"{columns.tolist()}."
            )
        return columns % n_features

    def _table(self, index, found, is_flat):
        """What is said of every asked column, as arrays."""
        parts = {
            "coef": found.coef,
            "estimate": found.estimate,
            "standard_error": found.standard_error,
            "z": found.z,
            "p_value": found.p_value,
        }
        if is_flat:
            parts = {name: part[:, 0] for name, part in parts.items()}
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return {"column": names[index], **parts}


class CoefficientInference(DebiasesCoefficients):
    """What regressors with linear predictors say of the true coefficients."""

    def coef_interval(
        self,
        columns=None,
        coverage=0.95,
        *,
        iteration=None,
        covariance="nodewise",
        X_unlabelled=None,
    ):
        """Confidence intervals of coefficients, from the one run.

        An iterate b_t is biased, by its penalty and by stopping early. Debiased, with
        e_t what the memory matrix says that rows would leave if they were left out,

            Z_tj = b_tj + w_j'e_t,

        it is normal about the true coefficient, with a standard error that needs no
        estimate of the noise: ||e_t|| sqrt(Omega_jj) / n where the covariance 1 / Omega
        of the columns is known [1]_. Else w_j is what a lasso of the column on the
        others leaves, over its product with the column [2]_. Other losses have e_t =
        n K^-1 Psi [3]_.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all. By "nodewise" each costs
            a lasso.
        coverage : float, default=0.95
            How often an interval should cover the true coefficient.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, by which the covariance is estimated together with
            those of fit: more rows than features.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)
            Lower and upper ends. The truth is the linear model, with rows that are
            independent and alike.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1); if fit has not kept what is needed
            (``keep_data=True``, and ``risk`` on); if rows have weights of their own;
            if a column is constant, or the covariance none of these columns.

        References
        ----------
        .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
               algorithms in linear models with application to early stopping",
               arXiv:2404.17856.
        .. [2] Zhang and Zhang (2014), "Confidence intervals for low dimensional
               parameters in high dimensional linear models", JRSS B 76(1), eq. 4.
        .. [3] Tan and Bellec (2024), arXiv:2410.02629.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = TrajectoryLasso(1.0, keep_data=True, random_state=0).fit(X, y)
        >>> model.coef_interval(["bmi", "s5"]).round(-1)
        array([[430., 720.],
               [500., 850.]])
        """
        table = self.coef_table(
            columns,
            coverage,
            iteration=iteration,
            covariance=covariance,
            X_unlabelled=X_unlabelled,
        )
        return np.stack([table["lower"], table["upper"]], axis=-1)

    def coef_table(
        self,
        columns=None,
        coverage=0.95,
        *,
        iteration=None,
        covariance="nodewise",
        X_unlabelled=None,
    ):
        """Estimates, standard errors, tests and intervals of coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all.
        coverage : float, default=0.95
            How often an interval should cover the true coefficient.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, as in :meth:`coef_interval`.

        Returns
        -------
        dict of ndarray
            ``column`` (names where X had them), ``coef`` of the iterate, ``estimate``
            debiased, ``standard_error``, ``z``, ``p_value`` of a coefficient of zero,
            ``lower`` and ``upper``: (n_columns,) or (n_columns, n_targets) each.
            :class:`pandas.DataFrame` takes that of one target.

        Raises
        ------
        ValueError
            As :meth:`coef_interval` does.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}.")
        index, found = self._debiased(columns, iteration, covariance, X_unlabelled)
        lower, upper = np.moveaxis(found.interval(coverage), -1, 0)
        if self._data.is_flat:
            lower, upper = lower[:, 0], upper[:, 0]
        table = self._table(index, found, self._data.is_flat)
        return {**table, "lower": lower, "upper": upper}


class CoefficientTests(DebiasesCoefficients):
    """Tests of coefficients of classifiers of two classes: whether they are zero.

    Their size is known up to a factor: that of the debiased iterate.
    """

    def coef_table(
        self, columns=None, *, iteration=None, covariance="nodewise", X_unlabelled=None
    ):
        """Tests of coefficients that are zero, from the one run.

        Where the classes depend on the features through one x'b alone, a debiased
        iterate is normal about a multiple of b, whatever the loss [1]_. Of a zero
        coefficient z is standard normal.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all. By "nodewise" each costs
            a lasso.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, by which the covariance is estimated together with
            those of fit: more rows than features.

        Returns
        -------
        dict of ndarray of shape (n_columns,)
            ``column`` (names where X had them), ``coef`` of the iterate, ``estimate``
            debiased, up to a factor that all share, its ``standard_error``, ``z`` and
            the two-sided ``p_value`` of a coefficient of zero.
            :class:`pandas.DataFrame` takes it.

        Raises
        ------
        ValueError
            If there are more than two classes; if fit has not kept what is needed
            (``keep_data=True``, and ``risk`` on); if rows have weights of their own;
            if a column is constant, or the covariance none of these columns.

        References
        ----------
        .. [1] Tan and Bellec (2024), arXiv:2410.02629; single-index models: Bellec
               (2022), "Observable adjustments in single-index models for regularized
               M-estimators", arXiv:2204.06990.
        """
        index, found = self._debiased(columns, iteration, covariance, X_unlabelled)
        return self._table(index, found, is_flat=True)


def _check_debiasable(problem, trajectory):
    """Raise where the debiased iterate would not be what it says."""
    if np.ptp(problem.row_weights) > 1e-9 * problem.row_weights.max():
        raise ValueError("Coefficients are debiased where rows weigh the same.")
    if len(trajectory.rows_seen()):
        raise ValueError("Coefficients are debiased without a preconditioner.")
    n_rows, n_columns = problem.design.shape
    is_free = all(p.penalty.strength == 0 for p in trajectory.phases)
    if is_free and n_columns > n_rows:
        slopes = [
            problem.loss.derivative(problem.target, trajectory.predictor[t])
            for t in (0, -1)
        ]
        first, last = map(np.linalg.norm, slopes)
        if last <= INTERPOLATES * first:
            raise ValueError(
                "The iterate fits every row, without a penalty and with more columns "
                "than rows: nothing is left to tell noise by. Use an earlier iterate."
            )


def _features(data, n_features, index):
    """The features of all rows, centred where there is an intercept.

    Raises
    ------
    ValueError
        If an asked column is constant.
    """
    design = data.problem.design
    X = design.dense_columns(np.arange(n_features), np.float64)
    means = X.mean(axis=0)
    sizes = np.abs(means if design.center is None else design.center[:, 0])
    constant = [int(j) for j in index if np.ptp(X[:, j]) <= CONSTANT * sizes[j]]
    if constant:
        raise ValueError(
            f"Columns {constant} are constant: they have no coefficient of their own."
        )
    if data.has_constant:
        X -= means
    return X


def _directions(X, index, covariance, X_unlabelled, is_centered):
    """By what is known of the covariance of the columns."""
    if X_unlabelled is not None:
        if not isinstance(covariance, str):
            raise ValueError("Pass covariance or X_unlabelled, not both.")
        covariance = _covariance_with(X, X_unlabelled, is_centered)
    elif isinstance(covariance, str):
        if covariance != "nodewise":
            raise ValueError(
                f"covariance must be 'nodewise' or an array, got {covariance!r}."
            )
        return nodewise(X, index)
    return by_covariance(X, index, covariance)


def _covariance_with(X, X_unlabelled, is_centered):
    """The covariance of the rows of fit and of rows without a target."""
    more = check_array(X_unlabelled, input_name="X_unlabelled")
    if more.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_unlabelled has {more.shape[1]} features, but fit has seen {X.shape[1]}."
        )
    if is_centered:
        more = more - more.mean(axis=0)
    n_rows = len(X) + len(more)
    if n_rows <= X.shape[1]:
        raise ValueError(
            f"A covariance of {X.shape[1]} features needs more than {n_rows} rows: use "
            "covariance='nodewise'."
        )
    return (X.T @ X + more.T @ more) / n_rows
