"""Every study runs, at a tiny size; what tutorials say is what they print."""

import ast
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from benchmarks.examples import missing_extras
from skacv import IterativeRidge
from skacv.optim.arrays import design_of
from skacv.optim.losses import SquaredError
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = {
    "plot_approximate_loo": {"n": 30, "columns": (15, 40), "max_iter": 50},
    "plot_boosting": {"n_rows": 80, "n_splits": 1},
    "plot_claims": {"n_rows": 1000, "n_repeats": 1},
    "plot_l1_support": {"n": 30, "p": 40, "values": (0.1, 0.5), "max_iter": 100},
    "plot_loo_bound": {"sizes": (60, 120)},
    "plot_batch_size": {"n": 60, "sizes": (4, 60), "max_iter": 5},
    "plot_coefficient_intervals": {"n_rows": 200, "max_iter": 5},
    "plot_computational_reach": {"n": 60, "n_epochs": 20},
    "plot_double_descent": {
        "n": 30,
        "counts": (5, 40),
        "max_iter": 10,
        "n_repeats": 1,
    },
    "plot_early_stopping": {"n_rows": 60, "n_splits": 2, "many": 60, "grid": [5, 10]},
    "plot_elliptical_rows": {"n": 30, "p": 45, "n_repeats": 2},
    "plot_frozen_features": {"n_drawings": 30, "width": 20, "max_iter": 3},
    "plot_gcv_fails": {"n": 40, "p": 60, "n_repeats": 2},
    "plot_iacv": {
        "n_small": 30,
        "n_large": 40,
        "n_updates": 12,
        "n_batches": 30,
        "n_left_out": 5,
        "n_repeats": 2,
    },
    "plot_iacv_cost": {"sizes": {6: (10, 20), 12: (10, 20)}, "max_iter": 8},
    "plot_intervals": {"n_rows": 30, "n_splits": 2, "max_iter": 8},
    "plot_kernel_spectra": {"n_rows": 60, "n_directions": 5, "n_epochs": 20},
    "plot_kernel_probabilities": {
        "n_rows": 300,
        "max_iter": 5,
        "n_values": 2,
        "n_splits": 1,
    },
    "plot_keras": {"max_iter": 3},
    "plot_label_noise": {
        "noises": (0.0, 0.5),
        "n_train": 60,
        "n_rows": 200,
        "max_iter": 10,
    },
    "plot_lightning": {"n_splits": 1, "max_epochs": 2},
    "plot_transformers": {"n_rows": 60, "n_splits": 1, "max_epochs": 2},
    "plot_logistic": {"n_rows": 200, "n_splits": 1, "patience": 5, "n_values": 3},
    "plot_logistic_risk": {"share": 0.1, "n_splits": 1},
    "plot_lqa": {"n": 40, "p": 50, "max_iter": 6, "n_repeats": 2},
    "plot_memory_matrix": {"n": 50, "p": 75, "n_nonzero": 5},
    "plot_one_pass": {"n_rows": 3000},
    "plot_noisy_digits": {
        "n_rows": 300,
        "max_iter": 5,
        "n_values": 2,
        "n_splits": 1,
    },
    "plot_random_labels": {"n_rows": 150, "share_of_epochs": 0.05},
    "plot_robust_sgd": {"share": 0.02},
    "plot_which_estimate": {"n_sizes": 4},
    "plot_quantiles": {"n_rows": 120, "n_new": 50, "max_iter": 5, "n_repeats": 1},
    "plot_quickstart": {"n_rows": 200},
    "plot_risk_rate": {"sizes": {80: 3, 160: 3}},
    "plot_rkhs_norm": {"sizes": (30, 60), "max_iter": 10},
    "plot_skorch": {"n_rows": 60, "max_epochs": 3, "n_splits": 1},
    "plot_stopping_matters": {"n_rows": 200, "max_iter": 10, "n_splits": 1},
    "plot_survival": {
        "n_rows": 60,
        "n_columns": 20,
        "max_iter": 2,
        "n_repeats": 1,
    },
    "plot_svm": {
        "n": 30,
        "p": 5,
        "n_updates": 12,
        "n_rows": 60,
        "n_values": 2,
        "n_splits": 2,
    },
}


# Those that take seconds even so.
LONG = {
    "plot_early_stopping",
    "plot_kernel_probabilities",
    "plot_logistic",
    "plot_loo_bound",
    "plot_robust_sgd",
}

# What the texts of a tutorial claim, by its name; the claims have its globals.
TUTORIALS = {}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def names_of(example):
    return runpy.run_path(str(EXAMPLES / f"{example}.py"))


def test_none_is_forgotten():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*TINY, *TUTORIALS}


def test_gallery_shows_every_example_once():
    page = (EXAMPLES / "index.rst").read_text()
    cards = re.findall(r"^   \.\./examples/(\w+)\.py$", page, re.MULTILINE)
    pages = re.findall(r"^   (plot_\w+)$", page, re.MULTILINE)
    assert cards == pages
    assert sorted(cards) == sorted([*TINY, *TUTORIALS])


# Peers of few rows may not converge, or have classes of fewer rows than folds.
@pytest.mark.filterwarnings("ignore:The least populated class in y has only")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in LONG), id=name)
        for name in TINY
    ],
)
def test_example_prints_and_draws(example, tmp_path, capsys):
    if missing := missing_extras(EXAMPLES / f"{example}.py"):
        pytest.skip(f"needs {', '.join(missing)}")
    names_of(example)["main"](**TINY[example], output=tmp_path / "figures")
    (figure,) = (tmp_path / "figures").glob("*.png")
    assert figure.name == f"{example.removeprefix('plot_')}.png"
    assert str(figure) in capsys.readouterr().out
    for ax in plt.gcf().axes:
        assert_is_legible(ax)


def assert_is_legible(ax):
    """Both axes say what they are, and no line falls to the zero of a log scale."""
    panels = {
        "x": ax.get_shared_x_axes().get_siblings(ax),
        "y": ax.get_shared_y_axes().get_siblings(ax),
    }
    for name, siblings in panels.items():
        ticks = [text.get_text() for text in getattr(ax, f"get_{name}ticklabels")()]
        are_words = any(re.search("[a-z]{2}", text) for text in ticks)
        labels = [getattr(panel, f"get_{name}label")() for panel in siblings]
        assert are_words or any(labels), f"{ax.get_title(loc='left')}: {name}"
    for line in ax.lines:
        for scale, values in (
            (ax.get_xscale(), line.get_xdata()),
            (ax.get_yscale(), line.get_ydata()),
        ):
            values = np.asarray(values, dtype=float)
            is_axes_fraction = line.get_transform() != ax.transData
            assert scale != "log" or is_axes_fraction or not np.any(values <= 0)


def test_extras_of_an_example_are_known(tmp_path):
    example = tmp_path / "plot.py"
    example.write_text("import numpy\nfrom skacv.jax import OptaxRegressor\n")
    assert missing_extras(example) == ([] if find_spec("jax") else ["jax"])
    example.write_text("import numpy\nfrom skorch import NeuralNetRegressor\n")
    assert missing_extras(example) == ([] if find_spec("skorch") else ["skorch"])
    example.write_text("import numpy\nfrom skacv import IterativeRidge\n")
    assert missing_extras(example) == []


@pytest.mark.parametrize("solver", ["gradient descent", "Nesterov"])
def test_degrees_of_freedom_are_the_trace_of_the_fit(solver, rng):
    names = names_of("plot_gcv_fails")
    X = rng.standard_normal((12, 20))
    name, schedule = names["SOLVERS"][solver]
    # The fits of the unit vectors are the columns of the map y -> X b_t.
    model = IterativeRidge(
        0.0, solver=name, fit_intercept=False, max_iter=15, tol=0, risk=False, loo=False
    ).fit(X, np.eye(12))
    traces = [np.trace(X @ coef.T) for coef in model.coef_path_]
    eigenvalues = np.linalg.eigvalsh(X @ X.T / 12)
    df = names["degrees_of_freedom"](eigenvalues, schedule(model.step_size_), 15)
    np.testing.assert_allclose(df, traces, rtol=1e-10, atol=1e-12)


def test_newton_step_is_exact_at_a_converged_ridge(rng):
    names = names_of("plot_iacv")
    X, y = rng.standard_normal((15, 4)), rng.standard_normal((15, 1))
    problem = Problem(design_of(X), y, np.full((15, 1), 1 / 15), SquaredError())
    plan = [Phase(SquaredL2(0.1), GradientDescent(1 / problem.smoothness), 2000)]
    trajectory = run(problem, plan, np.zeros((1, 4, 1)))
    rows = np.array([0, 7, 14])
    left_out = LeftOutRows.of(problem, rows, LeaveOutRule())
    *_, found = names["newton_steps"](problem, trajectory, left_out, own_hessian=True)
    for row, coef in zip(rows, found):
        others = np.delete(X, row, axis=0)
        hessian = others.T @ others + 15 * 0.1 * np.eye(4)
        expected = np.linalg.solve(hessian, others.T @ np.delete(y, row))
        np.testing.assert_allclose(coef, expected, rtol=1e-10)


def test_steps_of_batches_are_halved_as_published():
    schedule = names_of("plot_iacv")["HalvedBatches"](0.5, 30, 10)
    steps = [step.step_size for step, _ in zip(schedule.updates(), range(1600))]
    halved = np.flatnonzero(np.diff(steps)) + 1  # in units of ten batches
    assert halved.tolist() == [100, 300, 700, 1500]
    assert steps[0] == 0.5
    assert steps[-1] == 0.5 / 16


def claims_of_booster(said):
    best, path = said.model.best_iter_, said.model.path_
    assert best == said.model.best_params_["max_iter"] == np.argmin(path)
    assert best < said.n_grown == len(path) - 1 < best + 50
    assert 1.005 * path[best] < path[-1]
    least, kept = min(said.test_path), said.test_path[best - 1]
    assert kept == pytest.approx(said.test_error)
    assert np.argmin(said.test_path) + 1 < best
    assert 0.9 * kept < least
    assert least < 0.95 * min(said.test_path[0], said.test_path[-1])
    train_path = said.display.train_path
    assert (np.diff(train_path[np.isfinite(train_path)]) < 0).all()

    itself, fifth = said.by_itself, said.by_a_fifth
    errors = {name: np.array(values) for name, values in said.errors.items()}
    mean = {name: values.mean() for name, values in errors.items()}
    assert len(errors[itself]) == 6
    assert mean[itself] < 0.99 * mean[fifth]
    assert np.ptp(said.n_trees[itself]) < 0.7 * np.ptp(said.n_trees[fifth])
    assert mean["30 trees"] == pytest.approx(mean[itself], rel=0.01)
    assert 1.05 * mean[itself] < mean["100 trees"] < 0.95 * mean["300 trees"]
    assert type(said.trees)().max_iter == 100
    assert (errors[fifth] < errors[itself]).any()
    assert (errors["100 trees"] > errors[itself]).all()

    score, corrected = np.mean(said.scores), np.mean(said.corrected)
    assert score < corrected < mean[itself]
    assert mean[itself] - corrected < np.mean(said.standard_errors)

    settings, rates = said.results["params"], said.grid["learning_rate"]
    left_out = zip(settings, said.results["left_out"])
    ended = [setting["learning_rate"] for setting, why in left_out if why]
    assert ended == 2 * [rates[-1]]
    assert len(settings) == 6
    assert said.race.best_params_["learning_rate"] == rates[0]
    trees = [setting["max_iter"] for setting in settings if "max_iter" in setting]
    assert said.race.best_params_["max_iter"] == max(trees)
    assert said.race_error < 0.99 * said.test_error


def claims_of_frame(said):
    assert said.X["smoothness"].isna().mean() == pytest.approx(0.2, abs=0.03)
    assert list(said.model.encoder_.dropped_) == ["sample"]
    assert {"clinic", "date"} < set(said.model.encoder_.kinds_)

    board = said.board.set_index("member")
    assert len(board) == 6
    assert board.index[0] == "blend"
    assert (board["score"].iloc[1:] > 1.02 * board.loc["blend", "score"]).all()
    assert (board["weight"].iloc[1:] > 0).sum() > 2
    assert board.loc["extra trees", "weight"] == 0
    assert abs(said.test_loss - said.expected) < 2 * said.error
    largest = board["weight"].iloc[1:].idxmax()
    assert said.display.estimator_name == largest
    assert said.display.iteration == board.loc[largest, "best_iter"]

    means = dict(zip(said.X_test.columns, said.importance.importances_mean))
    first, second, *_ = sorted(means, key=means.get, reverse=True)
    assert {first, second} == {"concave points", "texture"}
    assert max(abs(means["clinic"]), abs(means["date"])) < 0.2 * means[second]
    assert means["sample"] == 0

    assert said.same
    assert said.sizes[1] < 0.5 * said.sizes[0]
    assert said.new["clinic"].iloc[0] not in set(said.X_train["clinic"])
    assert said.new["area"].isna().tolist() == [False, True, False]
    assert not said.X_train["area"].isna().any()
    assert list(said.new) == list(said.X)[::-1]
    assert (said.report["malignant"] - said.report["as it was"]).abs().max() < 0.02


def claims_of_sure(said):
    three = said.score, said.corrected, said.test_error
    assert np.ptp(three) < 0.9 * min(said.score_se, said.corrected_se)
    score, corrected, error = (
        np.mean(values)
        for values in (said.scores, said.corrected_scores, said.test_errors)
    )
    assert len(said.scores) == 20
    assert score < 0.98 * error
    assert corrected == pytest.approx(error, rel=0.01)

    np.testing.assert_allclose(np.mean(said.coverages, axis=0), said.levels, atol=0.03)
    widths = np.ptp(said.interval, axis=1)
    assert grows_with(said.model.predict(said.X_test), widths)
    y_train, _ = train_test_split(said.y, train_size=150, random_state=0)
    held_out = said.model.held_out_prediction_
    assert grows_with(held_out, abs(y_train - held_out))

    board = said.board.set_index("member")
    assert np.ptp(board["score"]) < 0.5 * board["score_se"].min()
    assert said.first == board.index[0]
    assert len(said.differences) == 2
    for mean, standard_error in said.differences.values():
        assert 0 < mean < 0.9 * standard_error < 0.3 * board["score_se"].min()
    assert 10 < sum(said.first_is_best) < 18
    assert error < 0.995 * np.mean(said.first_errors)

    test_path, path = said.display.test_path[said.best :], said.model.path_[said.best :]
    assert 1.002 < path[-1] / path[0] < 1.05
    assert 1.002 < test_path[-1] / test_path[0] < 1.05
    assert test_path[0] - test_path.min() < 0.1 * said.model.possible_gain_
    assert said.n_held == len(said.gains) == 20


def grows_with(predictions, values):
    """Whether values are larger where predictions are."""
    low, *_, high = np.array_split(values[np.argsort(predictions)], 3)
    return low.mean() < 0.8 * high.mean()


TUTORIALS = {
    "plot_tutorial_booster": claims_of_booster,
    "plot_tutorial_frame": claims_of_frame,
    "plot_tutorial_sure": claims_of_sure,
}
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def text_of(tutorial):
    """What a tutorial says beside its code, without literals."""
    source = (EXAMPLES / f"{tutorial}.py").read_text()
    text = [ast.get_docstring(ast.parse(source))]
    text += re.findall(r"^# (?!%%)(.*)", source, re.MULTILINE)
    return re.sub(r"``.*?``", "", "\n".join(text))


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_tutorial_says_what_it_shows(tutorial, monkeypatch, capsys):
    monkeypatch.setattr(plt, "show", lambda: None)
    with plt.rc_context():
        said = SimpleNamespace(**names_of(tutorial))
    printed = set(NUMBER.findall(capsys.readouterr().out))
    assert set(NUMBER.findall(text_of(tutorial))) <= printed
    TUTORIALS[tutorial](said)
    # Two figures, to be read at 700 pixels.
    for figure in map(plt.figure, [1, 2]):
        assert figure.get_figwidth() == 7
        texts = [text for text in figure.findobj(Text) if text.get_text()]
        assert min(text.get_fontsize() for text in texts) >= 9
