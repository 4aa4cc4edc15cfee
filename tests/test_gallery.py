"""What the texts of the studies say is what they print and draw, at full size.

Sentences on seconds are not tested: machines are noisy.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.examples import missing_extras
from skacv import TrajectoryLogisticRegression
from skacv.optim.losses import Huber, Logistic
from skacv.optim.penalties import MCP

from .test_examples import EXAMPLES, TUTORIALS, names_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b)")
# A page of the gallery is as many pixels wide; text of so many can be read.
PAGE_WIDTH, FEWEST_PIXELS = 700, 11.5
# The longest ones have fewer splits, repeats or values here: the same claims hold.
SIZES = {
    "plot_approximate_loo": {"columns": (25, 100, 400)},
    "plot_iacv": {"n_repeats": 1},
    "plot_iacv_cost": {"sizes": {20: (50, 200, 800), 200: (200, 400)}},
    "plot_kernel_probabilities": {"n_splits": 3},
    "plot_risk_rate": {"sizes": {100: 80, 200: 80, 400: 80, 800: 40}},
    "plot_l1_support": {"values": (0.05, 0.1, 0.4)},
    "plot_stopping_matters": {"n_splits": 3},
}


def is_numbers(cell):
    """Whether a cell has numbers and no words: 0.9 ± 0.1, [1.0, 2.0], 12%."""
    return bool(NUMBER.search(cell)) and not re.search(r"[\w/^]", NUMBER.sub("", cell))


def rows_of(printed):
    """Label and numbers of each row; the cells before the first number label it."""
    rows = []
    for line in printed.splitlines():
        cells = [cell for cell in re.split(r" {2,}|\|", line.strip()) if cell.strip()]
        n_words = next((k for k, cell in enumerate(cells) if is_numbers(cell)), None)
        if n_words is not None:
            label = " ".join(cell.strip() for cell in cells[:n_words])
            numbers = NUMBER.findall("  ".join(cells[n_words:]))
            rows.append((label, np.array(numbers, dtype=float)))
    return rows


def tables_of(printed):
    """The table under each title: numbers by label."""
    blocks = [block.strip("\n") for block in printed.split("\n\n")]
    return {
        block.partition("\n")[0].partition("  ")[0].partition(":")[0]: dict(
            rows_of(block)
        )
        for block in blocks
        if block
    }


def unlabelled(printed, n_cells):
    """Rows of numbers alone, of so many cells."""
    rows = [numbers for label, numbers in rows_of(printed) if not label]
    return np.array([numbers for numbers in rows if len(numbers) == n_cells])


def lines_of(axes):
    """Heights of the lines of a panel, by label."""
    return {line.get_label(): np.asarray(line.get_ydata()) for line in axes.lines}


def number_after(words, printed):
    return float(re.search(rf"{words}\s*({NUMBER.pattern})", printed)[1])


def about(value, tolerance):
    return pytest.approx(value, rel=tolerance)


# ------------------------------------------------------------------ start here


def claims_of_boosting(shown):
    table = dict(rows_of(shown.printed))
    error = {name: numbers[-1] for name, numbers in table.items() if len(numbers) == 3}
    error |= {
        name: numbers[1] for name, numbers in table.items() if name.startswith("boost")
    }
    error["boosted trees"] = table["boosted trees"][2]
    error["their blend"] = table["their blend"][1]
    trees = [value for name, value in error.items() if name.startswith("boosted")]
    good = [value for name, value in error.items() if not name.startswith("boosted")]
    assert len(trees) == len(good) == 3
    assert max(good) < 0.97 * min(trees)
    assert max(good) < 1.05 * min(good)
    members = "lasso", "kernel", "boosted trees"
    weights = [table[name][1] for name in members]
    assert sum(weights) == pytest.approx(1, abs=0.02)
    (axes,) = shown.axes
    names = [text.get_text() for text in axes.texts]
    assert all(any(text.startswith(f"{name} 0.") for text in names) for name in members)
    assert sum(line.get_marker() == "o" for line in axes.lines) == 3


def claims_of_stopping_matters(shown):
    for table, axes in zip(list(tables_of(shown.printed).values())[1:], shown.axes):
        (loo, _), (tenth, _), (last, _), (tuned, _) = table.values()
        assert list(table)[:3] == [
            "stopped by leave-one-out",
            "stopped by a held-out tenth",
            "the last iterate",
        ]
        assert 1.03 * loo < tenth < 0.5 * last
        assert tuned < loo < 1.2 * tuned
        lines = lines_of(axes)
        test, train = lines["test error"], lines["training error"]
        assert np.nanmin(train) < 0.3 * train[0]
        labels = axes.get_legend_handles_labels()[1]
        assert sum(label.startswith("not stopped: ") for label in labels) == 1
        assert 1.1 * test.min() < min(test[0], 0.3 * test[-1])


def claims_of_early_stopping(shown):
    tables = tables_of(shown.printed)
    ways, raw = (
        tables[title]
        for title in (
            "Boosted trees, diabetes, five splits",
            "The raw table, three splits",
        )
    )
    run, grid, held_out, default, not_stopped = ways.values()
    assert next(iter(ways)) == shown.names["ONE_RUN"]
    assert run[-3] < 0.9 * not_stopped[-5]
    assert run[-3] == about(grid[-5], 0.03)
    for *_, excess, error, _, _ in (held_out, default):
        assert 0 < excess < 2 * error

    ours, lasso, forest, boosted = raw.values()
    assert ours[0] < lasso[0] < forest[0]
    assert lasso[0] < boosted[0]
    for _, excess, error, _ in (forest, boosted):
        assert excess > 2 * error

    expected = re.findall(
        r"expected error on new rows (\d+) ± (\d+), measured (\d+)", shown.printed
    )
    covered = re.findall(r"nominal 0\.90, covered ([\d.]+)", shown.printed)
    assert len(expected) == len(covered) == 2
    for score, error, measured in np.array(expected, dtype=float):
        assert abs(score - measured) < error
    np.testing.assert_allclose(np.array(covered, dtype=float), 0.9, atol=0.03)

    # The run of the figure is the example of README.
    kept = re.search(
        r"{'max_iter': (\d+)}", (EXAMPLES.parent / "README.md").read_text()
    )[1]
    stop = shown.axes[0].texts[0].get_text()
    assert stop.startswith(f"stops here: {kept} trees")


def claims_of_quickstart(shown):
    kept = int(number_after("trees kept:", shown.printed))
    (held_out, training), intervals = (
        [
            lines_of(shown.axes[0])[name]
            for name in ("cross-validation ± s.e.", "training error")
        ],
        shown.axes[1].collections[0].get_segments(),
    )
    assert held_out.argmin() == kept
    assert held_out[-1] > 1.02 * held_out[kept]
    assert (np.diff(training[np.isfinite(training)]) < 0).all()
    covered, n_test = re.search(r"interval: (\d+) of (\d+)", shown.printed).groups()
    assert 0.8 < int(covered) / int(n_test) < 1
    by_prediction = sorted(intervals, key=lambda interval: interval[0, 0])
    widths = np.array([high - low for (_, low), (_, high) in by_prediction])
    fifth = len(widths) // 5
    assert widths[-fifth:].mean() > 1.1 * widths[:fifth].mean()


# ------------------------------------------------------------------ choose a model


def claims_of_logistic(shown):
    cancer, digits = tables_of(shown.printed).values()
    for table in (cancer, digits):
        assert len(table) == 5
        iterate, C, *_ = table["path of C log loss"]
        assert (iterate, C) == (600, 1e4)
        scores = [numbers[-2] for numbers in table.values()]
        assert max(scores) - min(scores) < 0.01
    loss = {name: numbers[-3] for name, numbers in cancer.items()}
    assert min(loss, key=loss.get) == "early stopping log loss"
    loss = {name: numbers[-3] for name, numbers in digits.items()}
    assert min(loss, key=loss.get) == "LogisticRegressionCV log loss"


def claims_of_svm(shown):
    first, second = list(tables_of(shown.printed).values())[1:]
    errors = np.array([first[name] for name in first])
    before, after = errors[:, ::2], errors[:, 1::2]
    assert list(first) == [
        "squared hinge",
        "hinge smoothed over 0.5",
        "hinge smoothed over 0.1",
        "raw hinge",
    ]
    assert (after < before).all()
    assert (after[:2] < 0.02).all()
    assert (after[2] > 2 * after[1]).all()
    assert after[3, 1] > 1
    assert (np.diff(after[1:], axis=0) > 0).all()
    for name in list(first)[:2]:
        assert lines_of(shown.axes[0])[name].max() < 0.03

    assert len(second) == 4
    accuracy = [numbers[-3] for numbers in second.values()]
    assert np.ptp(accuracy) < 0.0075


def claims_of_noisy_digits(shown):
    table = dict(rows_of(shown.printed))
    ours, _ = table.pop("stopped by leave-one-out")
    assert table.pop("after 300 epochs")[0] > 3 * ours
    ridge, svc = table.values()
    assert ours == pytest.approx(svc[0], abs=0.4)  # in percent of the test rows
    assert 1 < ridge[0] / ours < 2
    test = lines_of(shown.axes[0])["test, clean labels"]
    chosen = int(shown.axes[0].get_title(loc="left").split()[-1])
    assert test[chosen - 1] < test.min() + 0.01 < 0.25 * test[-1]


def claims_of_kernel_probabilities(shown):
    diabetes, cancer, digits = (
        {name: numbers for name, numbers in table.items()}
        for table in list(tables_of(shown.printed).values())[1:]
    )
    names = "stopped by five folds", "the last iterate", "least squares, stopped"
    svc, logistic = "SVC, tuned and calibrated", "LogisticRegressionCV"

    def losses(table):
        return {name: numbers[0] for name, numbers in table.items()}

    loss = losses(diabetes)
    stopped, last, least_squares = (loss[name] for name in names)
    assert last > 1.4 * stopped
    assert stopped < 0.98 * loss[svc]
    for name in (logistic, "GaussianProcessClassifier"):
        assert 0.93 * stopped < loss[name] < stopped
    assert least_squares == about(stopped, 0.03)

    loss = losses(cancer)
    stopped, last, least_squares = (loss[name] for name in names)
    others = svc, logistic, "GaussianProcessClassifier"
    for name in others:
        assert loss[name] < stopped < last
        assert abs(cancer[name][2] - cancer[names[0]][2]) < 1
    assert least_squares < 1.05 * min(loss.values())

    loss = losses(digits)
    stopped, last, least_squares = (loss[name] for name in names)
    assert last == about(stopped, 0.05)
    assert max(stopped, last) < 0.9 * loss[svc]
    assert digits[svc][2] < digits[names[0]][2]
    assert least_squares < 0.95 * min(loss[name] for name in loss if name != names[2])


def claims_of_survival(shown):
    none, kept, last = dict(rows_of(shown.printed)[:3]).values()
    held_out = number_after("held-out loss of the kept iterates:", shown.printed)
    assert held_out == about(kept[0], 0.02)
    assert kept[0] < 0.95 * none[0] < 0.5 * last[0]
    assert 0.6 < last[1] < kept[1] - 0.1
    assert 3 * kept[2] < none[2] < last[2]
    losses = lines_of(shown.axes[0])
    path, test = losses["held-out rows of folds"], losses["other patients"]
    assert test[path.argmin()] < 1.02 * test.min()
    training = losses["training rows"]
    assert training.argmin() > 0.9 * len(training)
    _, (event, _), _ = shown.names["simulate"](10_000, 5, np.random.default_rng(0))
    assert 0.18 < 1 - event.mean() < 0.22


def claims_of_quantiles(shown):
    own, shifted, medians, last, of_mean = dict(rows_of(shown.printed)[1:]).values()
    levels = np.array(shown.names["LEVELS"])
    for quantiles in (medians, last, of_mean):
        assert own[4] < 0.99 * quantiles[4]
        assert own[5] < 0.97 * quantiles[5]
    assert own[3] == shifted[3] == 0 < last[3]
    assert last[2] - last[0] < 0.85
    assert (abs(shifted[:3] - levels) < 0.02).all()
    assert abs(shifted[:3] - levels).sum() < abs(own[:3] - levels).sum()
    lower, median, upper = (
        int(label.split()[0]) for label in lines_of(shown.axes[1]) if "trees" in label
    )
    assert upper < median < lower


def claims_of_frozen_features(shown):
    table = dict(rows_of(shown.printed))
    together, after_each_other = re.findall(r"([\d.]+) s$", shown.printed, re.MULTILINE)
    assert float(together) < 0.8 * float(after_each_other)
    assert number_after("difference of both paths", shown.printed) < 1e-3
    _, expected, test, wrong = table["chosen"]
    _, _, test_last, wrong_last = table["last"]
    _, best = table["best"]
    assert test < expected < 1.15 * test
    assert test < 1.03 * best
    assert test < 0.97 * test_last
    assert wrong > wrong_last - 1


def claims_of_skorch(shown):
    table = dict(rows_of(shown.printed))
    _, by_folds = table["stopped by folds"]
    _, by_a_fifth = table["stopped by a fifth"]
    _, best = table["best epoch in hindsight"]
    assert by_folds < by_a_fifth < table["all epochs"][1]
    assert by_folds < 1.05 * best
    (expected,) = table["expected by the folds"]
    assert by_folds < expected < 1.2 * by_folds
    (axes,) = shown.axes
    lines = lines_of(axes)
    test = lines["all other drawings"]
    (chosen,) = (int(name.split()[-1]) for name in lines if "chosen" in name)
    assert test[chosen - 1] < 1.05 * test.min()


def claims_of_lightning(shown):
    table = dict(rows_of(shown.printed))
    assert table["folds"][0] < 0.97 * table["a fifth set aside"][0]
    assert table["folds"][0] < 0.7 * table["no stopping"][0]
    assert 0 < lines_of(shown.axes[0])["held-out rows of five folds"].argmin() < 30


def claims_of_transformers(shown):
    table = dict(rows_of(shown.printed))
    (loss, wrong, *_), (other, other_wrong, *_) = (
        table["folds"],
        table["a fifth set aside"],
    )
    assert loss < other
    assert wrong < other_wrong
    lines = lines_of(shown.axes[0])
    test, held_out = lines["test sentences"], lines["held-out sentences of five folds"]
    assert test[held_out.argmin()] < 1.05 * test.min()


def claims_of_keras(shown):
    table = dict(rows_of(shown.printed))
    _, expected, test = table["chosen"]
    assert test < 1.05 * table["best"][1] < 0.8 * table["last"][2]
    assert expected < table["last"][1]
    assert number_after("chosen variables:", shown.printed) == about(test, 1e-3)


def claims_of_one_pass(shown):
    table = dict(rows_of(shown.printed))
    _, chosen = table["lasso path on the summary, stopped"]
    assert 0 < chosen - 1 < 1e-4
    assert table["its last iterate"][0] - 1 > 1.2 * (chosen - 1)
    assert 0.003 < table["SGDRegressor, 3 epochs"][1] - 1 < 0.03


# ------------------------------------------------------------------ trust an estimate


def claims_of_which_estimate(shown):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in shown.printed.splitlines()
        if re.match(r"\| \d", line)
    ]
    assert len(rows) == 4
    for n_rows, _, linear, l1, others in rows:
        is_small = int(n_rows) < 1000
        assert linear == ("leave-one-out" if is_small else "five folds")
        assert l1 == others == "five folds"
    is_left_out, (linear, *_) = (
        shown.names[name] for name in ("is_left_out", "MODELS")
    )
    model = shown.names["MODELS"][linear]
    shapes = [(n, p) for n in (700, 3000) for p in (10, 1000, 50_000)]
    assert [is_left_out(model, *shape) for shape in shapes] == 3 * [True] + 3 * [False]
    assert any(is_left_out(model, 1700, p) for p in (100, 50_000))
    # Neither panel has nearly one colour.
    rows = np.geomspace(10, 1e8, 50)
    for panel in shown.axes:
        assert panel.get_ylabel() == "columns"
        assert len(panel.texts) >= 3
    areas = [is_left_out(model, n, p) for n in rows for p in (10, 1000, 100_000)]
    assert 0.2 < np.mean(areas) < 0.8


def claims_of_intervals(shown):
    (_, early), (_, early_width), (_, best), (_, width), (_, last), (_, last_width) = (
        rows_of(shown.printed)[-6:]
    )
    for coverage, widths in ((early[::2], early_width), (best[::2], width)):
        np.testing.assert_allclose(coverage[:3], 0.9, atol=0.02)
        assert np.ptp(widths[:3]) < 0.02 * widths[0]
    jackknife, loo, risk, training = last[::2]
    assert best[6] < 0.87
    assert 0.82 < risk < 0.89 < min(jackknife, loo)
    np.testing.assert_allclose(last_width[:2], 3 * width[:2], rtol=0.1)
    assert training == pytest.approx(1 / 8, abs=0.03)
    assert last_width[3] < 0.3 * width[3]


def claims_of_coefficient_intervals(shown):
    diabetes, cancer, simulated = re.split(
        r"Breast cancer: |Simulated, ", shown.printed
    )
    assert number_after("Intervals without zero:", shown.printed) == 4
    expected = re.search(r"^([\d.]+) would be expected", shown.printed, re.MULTILINE)
    assert round(float(expected[1])) == 3
    assert number_after("Diabetes with products:", shown.printed) == 64
    assert number_after("least squares to", shown.printed) < 1e-6
    rows = [numbers for _, numbers in rows_of(diabetes) if len(numbers) == 7]
    _, debiased, _, _, _, estimate, error = np.transpose(rows)
    np.testing.assert_allclose(debiased, estimate)
    assert error.max() > 10 * error.min()

    rows = [numbers for _, numbers in rows_of(cancer) if len(numbers) == 7]
    _, debiased, _, _, _, estimate, _ = np.transpose(rows)
    assert len(rows) == 6
    assert (np.abs(debiased) <= np.abs(estimate)).all()
    assert np.abs(debiased).sum() < 0.99 * np.abs(estimate).sum()
    assert np.abs(debiased).sum() > 0.93 * np.abs(estimate).sum()

    true, coef, _, lower, upper = unlabelled(simulated, 5).T
    assert len(true) == 3
    assert ((lower < true) & (true < upper)).all()
    assert (coef[:2] < 0.7 * true[:2]).all()


def claims_of_logistic_risk(shown):
    table = dict(rows_of(shown.printed))

    def row(data, name):
        return table[f"{data} {name}"]

    names = "memory matrix", "leave-one-out", "five folds"
    data = "Gaussian rows"
    (stop, test, said, _), (stop_loo, test_loo, loo, _), _ = (
        row(data, name) for name in names
    )
    best = row(data, "the best iterate")[0]
    assert said == about(loo, 0.02)
    for loss, estimate, iterate in ((test, said, stop), (test_loo, loo, stop_loo)):
        assert 1.01 * loss < estimate < 1.09 * loss
        assert abs(iterate - best) <= 2

    data = "breast cancer with products"
    (stop, test, said, _), (stop_loo, *_), (stop_cv, *_) = (
        row(data, name) for name in names
    )
    best = row(data, "the best iterate")[0]
    assert said > 1.05 * test
    assert stop < 0.8 * min(best, stop_loo, stop_cv)
    lines = lines_of(shown.axes[1])
    assert lines["memory matrix"][-1] > 1.2 * lines["test rows"][-1]


def claims_of_elliptical_rows(shown):
    table = dict(rows_of(shown.printed))
    for algorithm in ("gradient descent", "ISTA"):
        published, scaled, loo = (
            table[f"{algorithm} {name}"][::2]
            for name in (
                "memory matrix, published",
                "memory matrix, row scales",
                "leave-one-out",
            )
        )
        np.testing.assert_allclose(published, 0.8, atol=0.07)
        np.testing.assert_allclose(scaled, loo, rtol=0.02)
        np.testing.assert_allclose(scaled, 1, atol=0.08)


def claims_of_gcv_fails(shown):
    table = dict(rows_of(shown.printed))
    costs = {1: (1.002, 1.03), 10: (1.06, 1.15)}
    for signal, (low, high) in costs.items():
        for solver, largest in (("gradient descent", 3), ("Nesterov", 24)):
            label = f"{solver}, {signal}"
            *_, at_last, picked, best, cost = table[f"{label} GCV"]
            assert at_last > largest
            assert picked < best
            assert low < cost < high
            for name in ("memory matrix", "leave-one-out"):
                *ratios, picked, best, cost = table[f"{label} {name}"]
                np.testing.assert_allclose(ratios, 1, atol=0.1)
                assert cost < 1.03
    assert table["gradient descent, 1 GCV"][-2] < 4 < table["Nesterov, 10 GCV"][-2]
    ratio = number_after("GCV / truth", shown.printed.split("converged lasso")[1])
    assert ratio == about(1, 0.05)

    # Under acceleration the degrees of freedom pass the number of rows.
    X = np.random.default_rng(0).standard_normal((200, 300))
    eigenvalues = np.linalg.eigvalsh(X @ X.T / 200)
    _, schedule = shown.names["SOLVERS"]["Nesterov"]
    schedule = schedule(1 / eigenvalues.max())
    df = shown.names["degrees_of_freedom"](eigenvalues, schedule, 100)
    assert df[0] < 200 < df.max()


def claims_of_loo_bound(shown):
    table = {
        (name, numbers[0]): numbers[1:]
        for name, numbers in rows_of(shown.printed)
        if len(numbers) == 4
    }
    names = "gradient descent", "proximal gradient descent", "SGD"
    assert len(table) == 6
    for name in names:
        (change, error, _), (new_change, new_error, new_bound) = (
            table[name, n] for n in (250, 1000)
        )
        assert 2.5 < change / new_change < 6
        assert 7 < error / new_error < 50
        assert new_error < 0.01 * new_change
        assert new_error < new_bound < new_change
    change, error, bound = table["SGD", 250]
    assert np.isinf(bound)
    assert error < 0.05 * change


def claims_of_l1_support(shown):
    rows = unlabelled(shown.printed, 9).T
    _, _, _, alo, path, refits, changes, changes_of_refits, leverage = rows
    is_small = leverage < 0.4
    np.testing.assert_allclose(alo[is_small], refits[is_small], rtol=0.01)
    assert changes_of_refits[is_small].min() < 10 < 50 < changes[is_small].max()
    off = alo / refits - 1
    assert (changes[~is_small] > 50).all()
    assert 0.05 < np.abs(off[~is_small]).max() < 0.13
    np.testing.assert_allclose(path, refits, rtol=0.02)
    np.testing.assert_allclose(changes, changes_of_refits, atol=12)


def claims_of_approximate_loo(shown):
    errors, seconds = list(tables_of(shown.printed).values())[:2]
    support, jackknife, published, loo, smoothed, lqa = list(errors.values())[2:]
    assert ((0.05 < support) & (support < 0.2)).all()
    assert (support < jackknife).all()
    assert 1.5 < np.mean(jackknife / support) < 3
    assert ((0.003 < published) & (published < 0.01)).all()
    assert (loo < 1e-3).all()
    assert np.mean(smoothed / support) == about(1, 0.25)
    assert (lqa > 0.5).all()
    assert list(seconds)[-1] == "refits"
    # One step on the support is the limit of the smoothed one, as all that is zero is.
    rng = np.random.default_rng(0)
    X, y = shown.names["drawn"](40, 12, rng)
    coef = np.zeros(12)
    coef[:3] = 1.0, -0.5, 0.3
    ridge = np.where(coef == 0, 1e9, 1e-9)
    found = shown.names["newton_step"](X, y, coef, ridge)
    used, chance = X[:, :3], 1 / (1 + np.exp(-X @ coef))
    curvature = chance * (1 - chance)
    hessian = (used.T * curvature) @ used
    leverage = np.einsum("ij,ij->i", used @ np.linalg.inv(hessian), used)
    step = (chance - y) * leverage / (1 - curvature * leverage)
    np.testing.assert_allclose(found, X @ coef + step, rtol=1e-5)
    # The smoothed fit is where its objective has no slope.
    coef = shown.names["smoothed_fit"](X, y, 2.0)
    slope = X.T @ (1 / (1 + np.exp(-X @ coef)) - y)
    slope += 2.0 * coef / np.sqrt(coef**2 + shown.names["SMOOTHING"] ** 2)
    assert np.abs(slope).max() < 1e-4


# ------------------------------------------------------------------ papers


def claims_of_memory_matrix(shown):
    rows = unlabelled(shown.printed, 4)
    assert len(rows) == 9
    lines = lines_of(shown.axes[0])
    np.testing.assert_allclose(lines["estimate"], lines["truth"], rtol=0.06)
    np.testing.assert_allclose(rows[:, 1], rows[:, 2], rtol=0.06)


def claims_of_risk_rate(shown):
    table = {
        (*name.split(maxsplit=1), numbers[0]): numbers[1:]
        for name, numbers in (
            (re.sub("squared error", "squared", name), numbers)
            for name, numbers in rows_of(shown.printed)
        )
        if len(numbers) > 6
    }
    assert len(table) == 12
    losses = "squared", "Huber", "logistic"
    matrix = np.array([table[n, "memory matrix", t] for n in losses for t in (5, 30)])
    folds = np.array([table[n, "five folds", t] for n in losses for t in (5, 30)])
    slopes, errors = matrix[:, -2:].T
    np.testing.assert_allclose(slopes, -0.5, atol=0.15)
    assert (np.abs(slopes + 0.5) < 3 * errors).all()
    assert slopes[1] < -0.5 < slopes[5]
    assert (folds[:, -2] > slopes).all()
    assert (folds[1::2, -3] > 1.5 * matrix[1::2, -3]).all()
    np.testing.assert_allclose(folds[:, 0], matrix[:, 0], rtol=0.3)
    # The integrals against means over many rows.
    rng = np.random.default_rng(0)
    losses = {
        "normal": lambda y, z: (y - z) ** 2,
        "student": Huber(1.0).value,
        "labels": Logistic().value,
    }
    for _, noise, _ in shown.names["SETTINGS"].values():
        X, y, beta = shown.names["drawn"](300_000, 20, noise, rng)
        coef = 0.5 * beta + 0.1
        loss = losses[noise](y, X @ coef)
        error = loss.std() / np.sqrt(len(loss))
        expected = shown.names["risk"](coef, beta, noise)
        assert loss.mean() == pytest.approx(expected, abs=4 * error)


def claims_of_iacv_cost(shown):
    columns, rows, *_, published, loo = unlabelled(shown.printed, 9).T
    is_wide = columns == 200
    # Those that run exactly are so up to rounding, the others close.
    assert loo.max() < 1e-4
    assert (loo[is_wide] < 1e-10).all()
    assert (loo < 0.05 * published).all()
    worst = published.argmax()
    assert (columns[worst], rows[worst]) == (200, 400)
    assert 0.01 < published[worst] < 0.02
    assert published[~is_wide][-1] < 0.02 * published[~is_wide].max()
    # The linearised runs, forced, are those of the public parameter.
    X, y = shown.names["drawn"](60, 5, np.random.default_rng(0))
    model = TrajectoryLogisticRegression(
        solver="gd", fit_intercept=False, max_iter=20, tol=0, risk=False
    )
    model.set_params(loo=True, loo_correction=False).fit(X, y)
    path = shown.names["published"](X, y, model.step_size_, 20)
    np.testing.assert_allclose(path, model.loo_path_, rtol=1e-10)


def claims_of_lqa(shown):
    table = dict(rows_of(shown.printed))
    ends = {}
    for name in ("LQA", "prox"):
        truth = table[f"{name} truth"]
        for estimate in ("memory matrix", "leave-one-out"):
            np.testing.assert_allclose(table[f"{name} {estimate}"], truth, rtol=0.05)
        assert table[f"{name} training"][-1] < 0.9 * truth[-1]
        ends[name] = truth
    assert ends["LQA"][-1] == about(ends["prox"][-1], 0.01)
    assert ends["LQA"][1] > 1.1 * ends["prox"][1]
    for lines in map(lines_of, shown.axes):
        for estimate in ("memory matrix", "leave-one-out"):
            np.testing.assert_allclose(lines[estimate], lines["truth"], rtol=0.06)
    # An update minimises the quadratic approximation; the slope is that of MCP.
    schedule, strength, gamma = (
        shown.names["lqa"](0.3),
        shown.names["STRENGTH"],
        shown.names["GAMMA"],
    )
    coef, gradient = np.array([0.2, -0.4, 0.9]), np.array([0.1, -0.3, 0.2])
    found = schedule.function(1, coef, coef, gradient, gradient)
    weight = [max(strength - abs(b) / gamma, 0) / abs(b) for b in coef]
    slope = (found - coef) / 0.3 + gradient + weight * found
    np.testing.assert_allclose(slope, 0, atol=1e-14)
    eps = 1e-6
    value = MCP(strength, gamma).value
    for b, w in zip(coef, weight):
        slope = value(np.array([[b + eps]])) - value(np.array([[b - eps]]))
        assert float(np.sum(slope)) / (2 * eps) == pytest.approx(w * b, abs=1e-6)


def claims_of_robust_sgd(shown):
    ratios = [numbers for _, numbers in rows_of(shown.printed) if len(numbers) == 3]
    assert len(ratios) == 12
    np.testing.assert_allclose(ratios, 1, atol=0.1)
    # The worst of an iterate is the last column.
    assert (
        np.abs(np.array(ratios)[:, :2].T - 1)
        <= np.abs(np.array(ratios)[:, 2] - 1) + 0.011
    ).all()


def claims_of_iacv(shown):
    tables = tables_of(shown.printed)
    assert len(tables) == 6
    for name, table in tables.items():
        early, late = (
            {method: table[method][k] for method in table if method != "exact"}
            for k in (0, 1)
        )
        assert early["IACV"] < 0.4 * min(early["NS"], early["IJ"])
        gain = [errors["IACV"] / errors["IACV, corrected"] for errors in (early, late)]
        if name.startswith("SGD"):
            assert late["IACV"] < 0.4 * min(late["NS"], late["IJ"])
            assert 1.2 < min(gain) < 50
        else:
            assert late["NS"] == about(late["IACV"], 0.1)
            assert late["IJ"] > 2 * late["IACV"]
            assert min(gain) > 30
        assert 0.3 < table["exact"][-1] / table["IACV"][-1] < 3


def claims_of_batch_size(shown):
    table = dict(rows_of(shown.printed))
    sizes = table["batch size m*"]
    (critical, *sgd), (lowered, *eigenpro) = table["SGD"], table["EigenPro"]
    assert critical == pytest.approx(5, abs=1)
    assert 200 < lowered < 1000
    for threshold, samples in (
        (critical, np.array(sgd)),
        (lowered, np.array(eigenpro)),
    ):
        assert samples[sizes <= threshold].max() < 1.5 * samples[0]
        assert samples[-1] > 4 * samples[0]
        assert (np.diff(samples[sizes > threshold]) > 0).all()


def claims_of_computational_reach(shown):
    table = dict(rows_of(shown.printed))
    gaussian, laplacian = table["exp(-k^2 / 2)"], table["1 / (1 + k^2)"]
    assert gaussian[2] / gaussian[0] == about(0.8, 0.05)
    assert laplacian[2] / laplacian[0] == about(0.1, 0.1)
    for errors in (gaussian, laplacian):
        assert errors[3] < 0.5 * errors[0]

    lines = lines_of(shown.axes[0])
    for kernel in ("Gaussian", "Laplacian"):
        plain, preconditioned = (
            lines[f"{kernel}, {solver}"] for solver in ("gradient descent", "EigenPro")
        )
        assert preconditioned[9] < 0.85 * plain[9]  # after 100 iterations
    assert preconditioned[9] < 1.05 * preconditioned.min()
    assert plain[-1] < 1.05 * preconditioned[9]
    assert plain[-1] == about(preconditioned[-1], 0.1)


def claims_of_kernel_spectra(shown):
    table = dict(rows_of(shown.printed))
    gaussian, laplace = (
        table[f"{kernel}, gradient descent"] for kernel in ("Gaussian", "Laplace")
    )
    assert gaussian[2] < 0.9 * laplace[2]
    assert gaussian[4] > 2 * laplace[4]
    predicted = re.findall(r"at 1000: ([\d.]+)", shown.printed)
    np.testing.assert_allclose(
        [gaussian[4], laplace[4]], np.array(predicted, dtype=float), rtol=0.05
    )
    # After a tenth of the epochs EigenPro is further.
    for kernel, path in (("Gaussian", gaussian), ("Laplace", laplace)):
        preconditioned = table[f"{kernel}, EigenPro"]
        assert preconditioned[2] < path[3]
        assert preconditioned[3] < path[4]
    spectra = lines_of(shown.axes[0])
    fall = {name: path[-1] / path[99] for name, path in spectra.items()}
    assert fall["Gaussian"] < 0.1 * fall["Laplace"]
    # Numbers: p, the rate, its share, the power, its share.
    decays = [
        numbers
        for label, numbers in rows_of(shown.printed)
        if label in ("Gaussian", "Laplace") and len(numbers) == 5
    ]
    gaussian, laplace = np.reshape(decays, (2, 5, 5))
    assert gaussian[:, 0].tolist() == laplace[:, 0].tolist() == [2, 4, 8, 16, 64]
    assert (gaussian[:, 2] > gaussian[:, 4]).all()
    assert (laplace[:, 4] > laplace[:, 2]).all()
    assert gaussian[0, 4] < 0.95 < 0.99 < gaussian[0, 2]
    assert gaussian[-1, 3:] == pytest.approx([-1.45, 0.9992], abs=0.011)
    assert laplace[-1, 3] == pytest.approx(-0.87, abs=0.011)


def claims_of_rkhs_norm(shown):
    # By data and kernel, noise, size: noise, size, then norm and error of three kinds.
    rows = unlabelled(shown.printed, 8).reshape(2, 2, 3, 4, 8)
    assert rows[0, 0, 2, :, 1].tolist() == [100, 200, 400, 800]
    clean, noisy = rows[:, :, 0], rows[:, :, 2]
    growth = noisy[:, :, -1, 2] / noisy[:, :, 0, 2]
    gaussian, laplace = growth.T
    assert sorted(gaussian) == pytest.approx([5, 6], abs=0.3)
    assert (laplace < 3).all()
    ratio = noisy[:, :, -1, 2] / clean[:, :, -1, 2]
    assert (ratio.min(), ratio.max()) == pytest.approx((1.5, 2.2), abs=0.05)
    gaussian, laplace = (noisy - clean)[:, :, -1, 3].T
    assert (laplace < 1).all()
    assert (gaussian > 3).all()
    assert (gaussian < 7).all()
    assert ((noisy - clean)[:, :, -1, 7] < 1.65).all()
    is_smaller = noisy[:, :, -1, 6] < clean[:, :, -1, 2]
    assert is_smaller.tolist() == [[True, True], [True, False]]


def claims_of_random_labels(shown):
    # Numbers: epochs until 1% and no labels are wrong, and their ratios.
    blocks = [dict(rows_of(block)) for block in shown.printed.split("\n\n")]
    digits, cancer = blocks[:2]
    noisy = [f"{labels} random" for labels in ("a tenth", "half", "all")]
    for table, of_true in ((digits, 3), (cancer, 4)):
        assert abs(table["Laplace, true labels"][1] - of_true) <= 1
        assert max(table[f"Laplace, {labels}"][1] for labels in noisy) <= 8
    assert abs(digits["Gaussian, true labels"][1] - 9) <= 2
    assert min(digits[f"Gaussian, {labels}"][3] for labels in noisy) > 16
    assert cancer["Gaussian, all random"][1] == np.inf
    of_true, of_noisy = cancer["Gaussian, true labels"], cancer[f"Gaussian, {noisy[0]}"]
    # Single rows decide these epochs, and rounding decides single rows.
    assert of_true[:2] == pytest.approx([7, 240], rel=0.3)
    assert of_noisy[:2] == pytest.approx([48, 272], rel=0.3)
    for axes in shown.axes:
        assert len(lines_of(axes)) == 8


def claims_of_label_noise(shown):
    tables = tables_of(shown.printed)
    assert len(lines_of(shown.axes[0])) == 7
    assert len(lines_of(shown.axes[1])) == 7
    digits, classes = (
        tables[f"{data}, test error in percent by share of random labels"]
        for data in ("digits", "two overlapping classes")
    )
    np.testing.assert_allclose(
        digits["least possible"], [0, 9, 18, 36, 54, 72], atol=1e-8
    )
    for table in (digits, classes):
        for kernel in ("Gaussian", "Laplace"):
            stopped = table[f"{kernel}, stopped"]
            assert (stopped - table[f"{kernel}, best in hindsight"] < 1.5).all()
            for kind in ("interpolated", "overfitted"):
                last = table[f"{kernel}, {kind}"]
                assert (last > stopped)[3:].all()
        gaps = table["Gaussian, stopped"] - table["Laplace, stopped"]
        assert (abs(gaps) < 1).all()
        gaps = table["Gaussian, interpolated"] - table["Laplace, interpolated"]
        assert (gaps[1:] > 0).all()
    beyond = {name: line - digits["least possible"] for name, line in digits.items()}
    assert beyond["Laplace, interpolated"][[1, 3]] == pytest.approx([2, 9], abs=1)
    assert beyond["Gaussian, interpolated"][3] == pytest.approx(25, abs=2)
    assert beyond["Laplace, stopped"][3] == pytest.approx(4, abs=0.7)
    # Columns: .3, 1, 3 and 10 times gamma.
    scales = tables["digits, interpolated"]
    gaussian, laplace = scales["Gaussian"], scales["Laplace"]
    assert gaussian[3] - laplace[1] < 0.3 * (gaussian[1] - laplace[1])
    scales = tables["two overlapping classes, interpolated"]
    gaussian, laplace = scales["Gaussian"], scales["Laplace"]
    assert max(gaussian[2], laplace[2]) - classes["least possible"][2] < 1.5
    assert gaussian[3] - classes["least possible"][2] > 6


def claims_of_double_descent(shown):
    counts, last, stopped, best = unlabelled(shown.printed, 4).T
    noise = number_after("noise alone has", shown.printed)
    peak = last.argmax()
    assert counts[peak] == 300
    assert last[peak] > 1000 * noise
    before, after = last[counts < 300], last[counts > 300]
    assert (np.diff(before[1:]) > 0).all()
    assert after[-1] < 0.1 * after[0] < 0.5 * last[peak]
    assert (stopped < 1.06 * best).all()
    assert (stopped[counts >= 100] < 1.2 * stopped.min()).all()


def claims_of_claims(shown):
    tables = tables_of(shown.printed)
    frequency = tables["claim frequency, beyond the truth"]
    severity = tables["claim severity, beyond the truth"]
    (everyone,), (grid,), (lasso,), (blend,) = frequency.values()
    assert "grid search" in list(frequency)[1]
    assert lasso == about(grid, 0.1)
    assert blend < min(grid, lasso) < 0.6 * everyone
    (everyone,), (grid,), (stopped,) = severity.values()
    assert stopped < 1.02 * grid < 0.7 * everyone
    left, right = shown.axes
    lines = lines_of(left)
    for name in ("held-out rows of folds", "other policies"):
        path = lines[name]
        assert 0 < path.argmin() < len(path) - 1
        assert path.min() < 0.7 * path[20]
        assert path[-1] > path.min()
    training = lines["training rows"]
    assert training[-1] == training.min()
    assert len(right.containers) == 2


CLAIMS = {
    "plot_boosting": claims_of_boosting,
    "plot_stopping_matters": claims_of_stopping_matters,
    "plot_early_stopping": claims_of_early_stopping,
    "plot_quickstart": claims_of_quickstart,
    "plot_logistic": claims_of_logistic,
    "plot_svm": claims_of_svm,
    "plot_noisy_digits": claims_of_noisy_digits,
    "plot_kernel_probabilities": claims_of_kernel_probabilities,
    "plot_survival": claims_of_survival,
    "plot_claims": claims_of_claims,
    "plot_quantiles": claims_of_quantiles,
    "plot_frozen_features": claims_of_frozen_features,
    "plot_skorch": claims_of_skorch,
    "plot_lightning": claims_of_lightning,
    "plot_transformers": claims_of_transformers,
    "plot_keras": claims_of_keras,
    "plot_one_pass": claims_of_one_pass,
    "plot_which_estimate": claims_of_which_estimate,
    "plot_intervals": claims_of_intervals,
    "plot_coefficient_intervals": claims_of_coefficient_intervals,
    "plot_logistic_risk": claims_of_logistic_risk,
    "plot_elliptical_rows": claims_of_elliptical_rows,
    "plot_gcv_fails": claims_of_gcv_fails,
    "plot_loo_bound": claims_of_loo_bound,
    "plot_l1_support": claims_of_l1_support,
    "plot_approximate_loo": claims_of_approximate_loo,
    "plot_memory_matrix": claims_of_memory_matrix,
    "plot_risk_rate": claims_of_risk_rate,
    "plot_lqa": claims_of_lqa,
    "plot_robust_sgd": claims_of_robust_sgd,
    "plot_iacv": claims_of_iacv,
    "plot_iacv_cost": claims_of_iacv_cost,
    "plot_batch_size": claims_of_batch_size,
    "plot_computational_reach": claims_of_computational_reach,
    "plot_kernel_spectra": claims_of_kernel_spectra,
    "plot_rkhs_norm": claims_of_rkhs_norm,
    "plot_label_noise": claims_of_label_noise,
    "plot_random_labels": claims_of_random_labels,
    "plot_double_descent": claims_of_double_descent,
}


def test_every_example_has_its_claims_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*CLAIMS, *TUTORIALS}


@pytest.fixture
def no_other_figures():
    plt.close("all")  # those of other tests in this process
    yield
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("no_other_figures")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("example", CLAIMS)
def test_study_says_what_it_shows(example, capsys):
    if missing := missing_extras(EXAMPLES / f"{example}.py"):
        pytest.skip(f"needs {', '.join(missing)}")
    names = names_of(example)
    with plt.rc_context():
        names["main"](**SIZES.get(example, {}))
    (figure,) = map(plt.figure, plt.get_fignums())
    printed = capsys.readouterr().out
    shown = SimpleNamespace(printed=printed, axes=figure.axes, names=names)
    CLAIMS[example](shown)

    pixels = PAGE_WIDTH / (72 * figure.get_figwidth())
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) * pixels > FEWEST_PIXELS
