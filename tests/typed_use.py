"""A user's script of the whole package, which ``mypy --strict`` finds no fault with.

Functions say what they return: where the package would give ``Any``, mypy complains.
``main`` runs those that need no extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skacv import (
    CoefficientIntervalDisplay,
    CoefficientPathDisplay,
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    RiskPathDisplay,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TableEncoder,
    TrajectoryClassifier,
    TrajectoryCoxRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
    approximate_loo,
)
from skacv.exceptions import (
    SeparationWarning,
    SmallTrainingSetsWarning,
    UnevenColumnsWarning,
)
from skacv.inspection import blend_shap_values
from skacv.model_selection import (
    ApproximateLOO,
    Estimate,
    FinishedRun,
    RecordsTrajectory,
    TablePipeline,
    register_estimate,
    run_in_trial,
    unregister_estimate,
)
from skacv.optim.arrays import design_of
from skacv.optim.design import ColumnDesign, Design
from skacv.optim.families import Grouped, GroupL2, Weighted
from skacv.optim.losses import (
    LOSSES,
    Expectile,
    Gamma,
    Huber,
    Logistic,
    LogLink,
    Loss,
    Multinomial,
    NegativeBinomial,
    Pinball,
    Poisson,
    PseudoHuber,
    SmoothedHinge,
    SmoothedQuantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from skacv.optim.penalties import (
    L1,
    MCP,
    PENALTIES,
    SCAD,
    ElasticNet,
    NonnegativeElasticNet,
    Penalty,
    SquaredL2,
    Uniform,
    Zero,
)
from skacv.optim.schedules import (
    SCHEDULES,
    EigenPro,
    GradientDescent,
    HeavyBall,
    Nesterov,
    Newton,
    RandomBatches,
    Schedule,
    SimplifiedNewton,
    StochasticGradient,
)
from skacv.optim.updates import (
    Iterate,
    NewtonStep,
    Pass,
    ProximalGradient,
    SimplifiedNewtonStep,
    State,
    Update,
)
from skacv.optim.user import Arguments, UserUpdate
from skacv.records import CoefPath, HeldOut, Record, Run
from skacv.testing import (
    check_iterative_estimator,
    check_loss,
    check_penalty,
    check_schedule,
    check_staged_adapter,
)

if TYPE_CHECKING:  # they need extras
    from skacv import jax, torch
    from skacv.torch import lightning

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = X[:, 0] + 0.1 * RNG.standard_normal(60)
LABELS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(60) > 0, "above", "below")


class OneIterate(Run):
    """A run without updates."""

    def __init__(self, y: NDArray[Any]) -> None:
        self.path = CoefPath(np.zeros((1, 4)), np.array([np.mean(y)]))

    def go_on(self, n_updates: int | None = None, progress: Any = None) -> bool:
        return True

    def record(self) -> Record:
        return Record(self.path, iteration=0, iterate=self.path.at(0), n_iter=0)


class Constant(RecordsTrajectory):
    """An estimator of one's own, whose one iterate is the mean."""

    def begin(self, X: Any, y: Any, **params: Any) -> Run:
        return OneIterate(y)

    def predict(self, X: Any) -> NDArray[Any]:
        return np.full(len(X), self.record_.iterate.intercept)


def regressors() -> list[RecordsTrajectory]:
    """Every regressor, with parameters of every kind."""
    counts = RNG.poisson(np.exp(X[:, 0]))
    return [
        Constant().fit(X, Y),
        IterativeRidge("path", solver="newton", max_iter=1, cv=5).fit(X, Y),
        TrajectoryLasso([0.2, 0.1], loo=True, random_state=0).fit(X, Y),
        TrajectoryElasticNet(0.1, l1_ratio=0.5, solver="ista").fit(X, Y),
        TrajectoryGroupLasso(0.1, groups=[0, 0, 1, 1]).fit(X, Y),
        TrajectoryHuberRegressor(0.1, epsilon=1.5, scale=1.0).fit(X, Y),
        TrajectoryPoissonRegressor(0.1).fit(X, counts),
        TrajectoryGammaRegressor(0.1, solver="newton").fit(X, 1 + counts),
        TrajectoryTweedieRegressor(0.1, power=1.2).fit(X, counts),
        TrajectoryQuantileRegressor(0.1, quantile=0.9, smoothing=0.5).fit(X, Y),
        TrajectoryCoxRegressor(0.1, ties="efron").fit(X, (Y > 0, abs(Y))),
        TrajectoryRegressor(0.1, loss="expectile").fit(X, Y),
        TrajectoryRegressor(0.1, loss=Huber(), penalty=L1(1.0), loo=False).fit(X, Y),
        KernelEigenProRegressor("laplacian", gamma=0.1, max_iter=5).fit(X, Y),
    ]


def classifiers() -> list[RecordsTrajectory]:
    """Every classifier."""
    balanced: dict[str, float] = {"above": 1.0, "below": 2.0}
    return [
        TrajectoryLogisticRegression("path", class_weight="balanced").fit(X, LABELS),
        TrajectoryLinearSVC(0.1, class_weight=balanced).fit(X, LABELS),
        TrajectoryClassifier(0.1, loss="squared_hinge").fit(X, LABELS),
        KernelEigenProClassifier(max_iter=5, batch_size="full").fit(X, LABELS),
    ]


def feature_machines() -> list[NDArray[Any]]:
    """Both, which have no iterates but rounds."""
    machine = RecursiveFeatureMachineRegressor("rbf", n_rounds=2).fit(X, Y)
    of_classes = RecursiveFeatureMachineClassifier(class_weight="balanced")
    of_classes.fit(X, LABELS)
    print(machine.loo_errors_, machine.scales_, of_classes.classes_)
    return [machine.feature_importances_, of_classes.predict_proba(X)]


def path_of(model: TrajectoryLasso) -> NDArray[Any]:
    """Fitted attributes and iterates."""
    earlier = assert_type(model.at_iteration(2), TrajectoryLasso)
    print(earlier.coef_, earlier.intercept_, model.loo_path_, model.n_iter_)
    return model.recorded_iterations()


def predicted(model: TrajectoryLasso) -> Iterator[NDArray[Any]]:
    """Predictions and intervals, of the iterate in use and of all."""
    yield model.predict(X)
    yield model.predict_interval(X, coverage=[0.5, 0.9], method="loo")
    yield model.predict_mean_interval(X)
    yield model.coef_interval([0, 1], coverage=0.9)
    yield model.staged_loss(X, Y)
    yield from model.staged_predict(X)
    print(model.coef_table(), model.score(X, Y), model.get_params())


def classified(model: TrajectoryLogisticRegression) -> Iterator[NDArray[Any]]:
    """Predictions of classes."""
    yield model.predict(X)
    yield model.decision_function(X)
    yield model.predict_proba(X)
    yield model.predict_log_proba(X)
    yield model.predict_set(X, coverage=[0.5, 0.9], method="aps")
    yield from model.staged_decision_function(X)
    yield from model.staged_predict_proba(X)


def stopped() -> TrajectoryEarlyStoppingCV:
    """A model that stops itself."""
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso("path", risk=True, keep_data=True),
        criterion="loo",
        rule="one_se",
        patience=None,
    )
    fitted = assert_type(model.fit(X, Y), TrajectoryEarlyStoppingCV)
    print(fitted.best_iter_, fitted.best_score_, fitted.results_, fitted.coef_)
    intervals: NDArray[Any] = fitted.predict_interval(X[:3], 0.9)
    intervals = fitted.predict_quantiles(X[:3], [0.05, 0.95])
    error: float = fitted.score(X, Y)
    print(fitted.predict(X), intervals, error, fitted.at_iteration(3).coef_)
    held_out: NDArray[Any] = fitted.held_out_prediction_
    print(fitted.leaderboard(), fitted.cv_results_["params"], held_out)
    print(fitted.evals_result_.keys(), fitted.best_estimator_, fitted.best_index_)
    return fitted


def self_stopped() -> tuple[NDArray[Any], NDArray[Any]]:
    """Estimators without settings."""
    regressor = SelfStoppingRegressor(TrajectoryLasso("path"), random_state=0)
    classifier = SelfStoppingClassifier(TrajectoryLogisticRegression("path"), cv=3)
    of_quantile = SelfStoppingRegressor(loss=Pinball(0.9), random_state=0)
    assert_type(of_quantile.fit(X, Y), SelfStoppingRegressor)
    return regressor.fit(X, Y).predict(X), classifier.fit(X, LABELS).predict_proba(X)


def quantiles(trees: Any) -> NDArray[Any]:
    """Several quantiles, and intervals between two."""
    model = assert_type(
        SelfStoppingQuantileRegressor(trees, levels=(0.1, 0.9), cv=3).fit(X, Y),
        SelfStoppingQuantileRegressor,
    )
    found: NDArray[Any] = model.predict_quantiles(X, [0.1])
    print(found)
    return model.predict_interval(X, coverage=0.8)


class Trial:
    """One of a tuner that prunes nothing."""

    def report(self, value: float, step: int) -> None:
        print(step, value)

    def should_prune(self) -> bool:
        return False


def staged(trees: Any) -> NDArray[Any]:
    """An estimator of another package."""
    model = assert_type(Staged(trees, cv=3, n_jobs=1).fit(X, Y), Staged)
    print(model.at_iteration(3).predict(X), list(model.staged_predict(X)))
    path: NDArray[Any] = run_in_trial(model.begin(X, Y), Trial(), every=1, patience=2)
    print(path)
    return model.staged_loss(X, Y)


def encoded() -> NDArray[Any]:
    """A table of a number and a category."""
    table = [[float(row), "ab"[row % 2]] for row in range(20)]
    encoder = assert_type(TableEncoder("codes", max_levels=9).fit(table), TableEncoder)
    kind: str = encoder.kinds_["x1"]
    names: NDArray[Any] = encoder.get_feature_names_out()
    print(kind, names, encoder.transform(table))
    lasso = TrajectoryLasso(0.1, max_iter=5, standardize=True)
    steps = [("encoder", TableEncoder()), ("model", lasso)]
    pipeline = assert_type(TablePipeline(steps).fit(table, Y[:20]), TablePipeline)
    print(pipeline.at_iteration(3).predict(table), pipeline.get_feature_names_out())
    return encoder.codes(table)


def summarised() -> TrajectoryLasso:
    """Rows in blocks."""
    summary = RowSummary(n_folds=3).partial_fit(X[:30], Y[:30])
    others = RowSummary(n_folds=3).partial_fit(X[30:], Y[30:], first_row=30)
    summary = summary.merge(others)
    fold: NDArray[Any] = summary.fold_of(np.arange(3))
    n_rows, n_columns = RowSummary.from_blocks([(X, Y)]).shape
    print(summary.sampled_indices_, fold, n_rows, n_columns, summary.standardized())
    return TrajectoryLasso(0.1).fit(RowSummary.from_arrays(X, Y))


def left_out() -> ApproximateLOO:
    """Leave-one-out of a fitted model."""
    found = approximate_loo(IterativeRidge(0.1, max_iter=2000).fit(X, Y), X, Y)
    mean: float = found.mean
    print(mean, found.predictions, found.method)
    return found


def drawn(model: TrajectoryEarlyStoppingCV) -> RiskPathDisplay:
    """Figures."""
    CoefficientPathDisplay.from_estimator(model, target=0).plot()
    CoefficientIntervalDisplay.from_estimator(model.estimator_, [0], coverage=0.9)
    return RiskPathDisplay.from_estimator(model, X, Y)


def read(run: FinishedRun) -> HeldOut:
    """An estimate of one's own."""
    return HeldOut(run.train_path, 0 * run.train_path)


def recorded_loss(model: TrajectoryLasso) -> float:
    """The record that a model holds."""
    record: Record = model.record_.at(1)
    residuals = record["loo"].first(2).residuals(1)
    return float(residuals.mean() + record["loo"].path[record.iteration])


def registered() -> bool:
    """It stands beside the others until it is taken away."""
    own = Estimate(name="own", label="the training error", read=read)
    register_estimate(own)
    unregister_estimate("own")
    return own.is_offered_by(TrajectoryLasso())


class Own(SquaredL2):
    """A penalty of one's own."""

    def terms(self, coef: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = 2 * super().terms(coef)
        return found


class Wide(SquaredError):
    """A loss of one's own, whose scale is computed."""

    @property
    def scale(self) -> float:
        return 2.0 * self.reported_factor


def parts() -> tuple[tuple[Loss, ...], tuple[Penalty, ...], tuple[Schedule, ...]]:
    """Losses, penalties and schedules, beside those that are listed."""
    losses = SquaredError(), Logistic(), Multinomial(), Poisson(), PseudoHuber(2.0)
    links: tuple[LogLink, ...] = Gamma(), Tweedie(1.2), NegativeBinomial(0.5)
    quantiles = SmoothedQuantile(0.9, smoothing=0.1), Expectile(0.9)
    hinges, own = (SmoothedHinge(0.1), SquaredHinge()), Wide()
    uniform: tuple[Uniform, ...] = (Own(1.0), L1(1.0), MCP(1.0), SCAD(1.0))
    more = Zero(), ElasticNet(1.0, l1_ratio=0.2), Weighted(L1(1.0), np.ones(4))
    signed = NonnegativeElasticNet(1.0, l1_ratio=0.2)
    grouped: Grouped = GroupL2(1.0, np.arange(4), np.ones(4))
    schedules = GradientDescent(0.1), Nesterov(0.1), HeavyBall(0.1, momentum=0.5)
    newton = Newton(1.0), SimplifiedNewton(1.0)
    batches = StochasticGradient(0.1, 0.5, 60, 10, 0), RandomBatches(0.1, 60, 10, 0)
    print(len(LOSSES), len(PENALTIES), len(SCHEDULES))
    return (
        (*losses, *links, *quantiles, *hinges, own),
        (*uniform, *more, signed, grouped),
        (*schedules, *newton, *batches),
    )


def evaluated() -> Iterator[NDArray[Any]]:
    """Methods of parts."""
    loss, penalty = Huber(), L1(0.1)
    target, predictor = Y[:, None], np.zeros((60, 1))
    yield loss.value(target, predictor)
    yield loss.derivative(target, predictor)
    yield penalty.with_strength(0.2).prox(predictor, 0.5)
    design: Design = design_of(X)
    yield design.dot(np.ones((4, 1)))
    columns: ColumnDesign = design_of(X)
    yield columns.gram(columns.storage_dtype)


def momentum(
    t: int, b1: NDArray[Any], b2: NDArray[Any], grad1: NDArray[Any], grad2: NDArray[Any]
) -> NDArray[Any]:
    """An update of one's own."""
    found: NDArray[Any] = b1 + 0.5 * (b1 - b2) - 0.2 * grad1
    return found


def updates() -> list[Update]:
    """The first update of a few schedules, and updates by themselves."""
    own = UserUpdate(momentum)
    print(Arguments(*[np.zeros(1)] * 4).state, State(Iterate(X), Iterate(X)).current)
    step: float = Nesterov(0.1).largest_stable_step(1.0)
    gradient = ProximalGradient(step)
    steps = gradient, Pass(gradient, (np.arange(3),)), NewtonStep(1.0)
    return [next(own.updates()), *steps, SimplifiedNewtonStep(1.0)]


def eigenpro(schedule: EigenPro) -> float:
    """The step of a schedule with a preconditioner."""
    return schedule.largest_stable_step(1.0)


def with_jax(coef: Any, predict: Any, loss: Any, optimizer: Any) -> jax.PathEstimate:
    """Any model and optimiser in JAX; it needs the extra."""
    acv = jax.TrajectoryACV(predict, loss, optimizer)
    run: jax.Run = acv.run(
        coef, X, Y, n_steps=5, batches=jax.shuffled_batches(60, 9, 1)
    )
    beside: jax.Alongside = acv.alongside(coef, X, Y, folds=3)
    beside.step(run.at_iteration(1))
    best: int = run.cv_path(folds=3).best_iteration
    print(best, beside.should_stop(patience=5), run.loo_path(method="linearised").path)
    print(
        run.risk_path(seed=1).se_path, jax.cv_path(predict, loss, loss, loss, X, Y, 2)
    )
    regressor = jax.OptaxRegressor(predict, lambda n: coef, max_iter=5).fit(X, Y)
    labels: NDArray[Any] = jax.OptaxClassifier(predict).fit(X, LABELS).predict(X)
    print(regressor.predict(X), labels)
    return run.cv_path()


def with_torch(module: Any, loss: Any, optimizer: Any) -> torch.PathEstimate:
    """The same in torch."""
    acv = torch.TrajectoryACV(module, loss, optimizer)
    run: torch.Run = acv.run(X, Y, 5, torch.shuffled_batches(60, 9, 1))
    beside: torch.Alongside = acv.alongside(X, Y)
    beside.step(rows=[0, 1])
    print(beside.load_best(), run.at_iteration(1), torch.draw([]))
    regressor = torch.TorchRegressor(module, max_iter=5, cv=3).fit(X, Y)
    labels: NDArray[Any] = torch.TorchClassifier(module).fit(X, LABELS).predict(X)
    print(regressor.at_iteration(1).predict(X), labels)
    return run.cv_path(folds=3)


def with_lightning(trainer: Any, module: Any, loader: Any) -> NDArray[Any]:
    """Folds beside a trainer."""
    callback = lightning.FoldsCallback(folds=3, patience=2)
    trainer.fit(module, loader)
    return callback.path_


def explained(model: TrajectoryEarlyStoppingCV) -> NDArray[Any]:
    """SHAP values of a blend."""
    values, expected = blend_shap_values(model, X, background=X)
    print(expected)
    return values


def checked() -> Callable[..., None]:
    """Checks of what others write."""
    check_loss(SquaredError())
    check_penalty(SquaredL2(0.1))
    check_schedule(GradientDescent(1.0))
    check_iterative_estimator(IterativeRidge(max_iter=5))
    return check_staged_adapter


def main() -> None:
    """Run all that needs no extra."""
    print(checked())
    lasso = TrajectoryLasso(0.01, loo=True, risk=True, keep_data=True).fit(X, Y)
    logistic = TrajectoryLogisticRegression().fit(X, LABELS)
    print(
        regressors(),
        classifiers(),
        path_of(lasso),
        issubclass(SeparationWarning, Warning),
        issubclass(SmallTrainingSetsWarning, Warning),
        issubclass(UnevenColumnsWarning, Warning),
    )
    print(len(list(predicted(lasso))), len(list(classified(logistic))))
    print(self_stopped(), encoded(), summarised(), left_out(), registered())
    print(
        feature_machines(), parts(), len(list(evaluated())), updates(), drawn(stopped())
    )
