"""Cox regression with any penalty and schedule."""

from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from .._compat import HasMethods, Interval, StrOptions, check_in_memory
from .._estimator.data.survival import ranked_times, survival_array
from .._estimator.data.training_data import EncodedTarget, validate_samples
from .._estimator.docstrings import CURVED, PARTS, documented
from .._estimator.parameters import ALPHA_CONSTRAINT, RUN_CONSTRAINTS, set_parameters
from .._estimator.prediction.predictions import RecordedModel
from .._estimator.prediction.survival import PredictsSurvival, baseline_hazards_of
from .._typing import RandomState, Standardize
from ..optim.cox import TIES, Cox
from ..optim.penalties import ElasticNet
from ..records.run import Run
from ._bases import PenalizedModel
from .general import PARTS_CONSTRAINTS, PENALTIES, spec_of_parts

# Arguments of other packages that change what is at risk, by what they are called.
REFUSED = {
    "strata": "strata: fit a model for each stratum",
    "entry": "left truncation: drop the times of entry",
    "start": "left truncation: drop the times of entry",
}


@documented(
    CURVED,
    PARTS,
    strength="alpha",
    loss="half deviance",
    alpha="0.01",
    smallest="1e-3",
    penalty="l2",
)
class TrajectoryCoxRegressor(PredictsSurvival, RecordedModel, PenalizedModel):
    """Cox regression of censored survival times, every iterate kept.

    The objective is minus the logarithm of Cox's partial likelihood over the sum of the
    weights, plus the penalty, and a constant that depends on ties and weights alone
    (zero without both):

        -log L(b) / sum w + alpha g(b).

    There is no intercept: a constant changes no hazard ratio. Read more in the
    :doc:`user guide </guide/survival>`.

    Parameters
    ----------
    {alpha, penalty}
    l1_ratio : float, default=0.5
        The share of the l1 norm with ``penalty="elasticnet"``.
    {groups}
    ties : {"breslow", "efron"}, default="breslow"
        How rows with events at the same time are compared with each other.
    schedule : {"nesterov", "gd", "heavy_ball"} or schedule, default="nesterov"
        Accelerated or plain gradient descent, or Polyak's heavy ball (momentum 0.9);
        one of ``skacv.optim.schedules`` whose updates are gradient steps of all rows.
    {standardize, max_iter, tol}
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, with L the largest eigenvalue of X'WX (X centred) times the
        largest cumulative hazard of a row where all hazards are equal (at least 1),
        plus the curvature of the penalty.
    {cv, keep_data}
    warm_start : bool, default=False
        Whether ``fit`` continues the recorded run: with a larger ``max_iter`` as one
        longer run; with another alpha, penalty or schedule from the last iterate.
    {n_jobs}
    random_state : int, RandomState instance or None, default=None
        Not used: updates take all rows.
    {verbose}

    Attributes
    ----------
    {coef_}
    intercept_ : float
        Minus the product of ``coef_`` and the means of the columns: predictions are
        relative to the mean row.
    {coef_path_, intercept_path_, alpha_path_, objective_path_}
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Half the deviance of the partial likelihood over the sum of the weights.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        The same for the predictions of all held-out rows, pooled [1]_.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, from the parts of the folds; with one fold, of
        its rows or their groups.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        The part of every fold in ``cv_path_``.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
        Predictions for the held-out rows, fold after fold. With more than 4 million
        numbers, or 1 million for a chosen iterate, they and ``cv_target_`` need
        ``keep_data=True``.
    {cv_indices_}
    cv_target_ : ndarray of shape (n_held_out,)
        Events and times of the held-out rows, fold after fold, in fields of these
        names.
    unique_times_ : ndarray of shape (n_times,)
        Times of the training rows, in ascending order.
    cum_baseline_hazard_ : StepFunction
        Cumulative hazard of the mean row, by Breslow's estimate.
    baseline_survival_ : StepFunction
        Survival function of the mean row.
    {record_, n_iter_, iteration_, step_size_, n_features_in_, feature_names_in_}

    Raises
    ------
    {ValueError}

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest held-out deviance.

    References
    ----------
    .. [1] Dai and Breheny (2019), "Cross validation approaches for penalized Cox
           regression", arXiv:1905.10432.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import TrajectoryCoxRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> censored = rng.exponential(2.0, 200)
    >>> y = time <= censored, np.minimum(time, censored)
    >>> model = TrajectoryCoxRegressor("path", penalty="l1", cv=5).fit(X, y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.score(X, y) > 0.7
    True
    >>> best.predict_survival_function(X[:2])[0](0.5) > 0
    True
    """

    _parameter_constraints = {
        **{
            name: RUN_CONSTRAINTS[name]
            for name in RUN_CONSTRAINTS.keys() - {"fit_intercept", "loo"}
        },
        **ALPHA_CONSTRAINT,
        "penalty": PARTS_CONSTRAINTS["penalty"],
        "groups": PARTS_CONSTRAINTS["groups"],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "ties": [StrOptions(set(TIES))],
        "schedule": [
            StrOptions({"nesterov", "gd", "heavy_ball"}),
            HasMethods(["updates", "largest_stable_step"]),
        ],
        "keep_data": ["boolean"],
    }
    # Neither is a parameter.
    fit_intercept = loo = False

    def __init__(
        self,
        alpha: ArrayLike = 0.01,
        *,
        penalty: Any = "l2",
        l1_ratio: float = 0.5,
        groups: ArrayLike = 1,
        ties: Literal["breslow", "efron"] = "breslow",
        schedule: Any = "nesterov",
        standardize: Standardize = False,
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Run the algorithm once and evaluate every iterate on the folds of ``cv``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, in float32 or float64. Sparse matrices are not densified.
        y : structured array of shape (n_samples,), array-like of shape (n_samples, 2) \
or tuple
            Events (True where the event has happened, False where a row is censored)
            and times: two fields, as ``sksurv.util.Surv`` makes them, two columns
            (event, time), or a tuple of both.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows. Rows with weight zero are ignored.
        **params : dict
            Passed to the splitter ``cv``, such as ``groups``; with metadata routing
            enabled, what it requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, all rows are censored, a warm start is
            impossible, or the iterates diverge (the message gives the largest stable
            step). The estimator is left unchanged.
        TypeError
            If fit gets unknown keyword arguments.
        """
        return super().fit(X, y, sample_weight, **params)

    def begin(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Run:
        """Begin a run, which goes on and is read as one likes.

        This object does not change until it takes a record of the run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Do not change it in place while the run goes on.
        y : structured array of shape (n_samples,), array-like of shape (n_samples, 2) \
or tuple
            Events and times, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As in ``fit``.

        Returns
        -------
        Run
        """
        refuse(params)
        check_in_memory(X, *y if isinstance(y, tuple) else (y,))
        return super().begin(X, survival_array(y), sample_weight, **params)

    def _encode_samples(self, X, y, sample_weight, offset=None):
        """Validated samples, and their targets as the loss takes them."""
        y = survival_array(y)
        samples = validate_samples(self, X, y["time"], sample_weight)
        samples = replace(samples, y=y[samples.rows])
        target, loss = ranked_times(samples.y), Cox(self.ties)
        loss.check_target(target)
        if offset is not None:
            samples.without_offset(loss, offset)  # which the loss does not have
        return samples, EncodedTarget(loss, target, samples.weights, True, {})

    def _spec(self):
        elastic_net = ElasticNet(1.0, float(self.l1_ratio))
        return spec_of_parts(self, penalties=PENALTIES | {"elasticnet": elastic_net})

    def _results(self, run):
        return {"baseline": baseline_hazards_of(run)}

    @staticmethod
    def _prediction(predictor, loss):
        """The prediction of a linear predictor."""
        return predictor

    def _mean_loss(self, target, predictor, weights):
        losses = self._loss.weighted_values(
            target, predictor.reshape(target.shape), weights[:, None]
        )
        return losses.sum() / weights.sum()


def refuse(params):
    """Raise where fit is passed what other packages take, and this one does not."""
    for name in params:
        if name in REFUSED and params[name] is not None:
            raise ValueError(f"{name} is not supported: {REFUSED[name]}.")
