"""Accuracy over repeats, against published figures and the truth: ``make studies``.

Each study prints a table; ``--output`` puts it in its section of a file, which
is kept under ``benchmarks/results``.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1
from skacv.optim.phases import Phase
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.risk.memory.memory_matrix import estimate_risk

from . import alpha_paths
from .curved_studies import converged, curved, published_levels
from .data import (
    FixedSigns,
    mean_cell,
    mean_ratio,
    rows_of,
    sparse_regression,
    true_risk,
)
from .default_peers import default_probabilities, defaults
from .default_studies import patience, regret
from .held_out_studies import criteria, intervals
from .inference_studies import coverage, nulls
from .kernel_default_studies import kernel_defaults
from .kernel_studies import (
    batch_sizes,
    computational_reach,
    double_descent,
    noisy_digits,
    noisy_probabilities,
    norms,
    random_labels,
)
from .many_rows_studies import many_rows
from .memory_studies import curved_memory
from .optimism_studies import optimism
from .report import COLUMNS, Row, Section, write_sections
from .summary_studies import summary_digits
from .table_studies import FOLDER, kernel_scores


def published_page():
    """Bellec & Tan's page at full size, with its own ten probes.

    n=10000, p=15000, 1000 nonzero coefficients, ISTA with alpha=.01: the
    published estimate and truth beside ours.
    """
    published = {
        0: (25.18, 24.75),
        1: (18.60, 18.08),
        2: (16.06, 15.48),
        95: (3.94, 3.83),
        99: (3.91, 3.82),
    }
    n, p = 10_000, 15_000
    rng = np.random.default_rng(2025)
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[:1000] = 15 / np.sqrt(n)
    y = X @ beta + 1.5 * rng.standard_normal(n)
    signs = rng.choice([-1.0, 1.0], size=(n, 10))
    problem = Problem(design_of(X), y[:, None], np.full((n, 1), 1 / n))
    step_size = (1 + np.sqrt(p / n)) ** -2
    plan = [Phase(L1(0.01), GradientDescent(step_size), 99)]
    trajectory = run(problem, plan, np.zeros((1, p, 1)))
    found = estimate_risk(problem, trajectory, method=10, rng=FixedSigns(signs)).path
    truth = true_risk(trajectory.coef[:, :, 0], 0.0, beta)
    yield "| iterate | published estimate | ours | published truth | ours |"
    yield "|---|---|---|---|---|"
    for t, (estimate, true) in published.items():
        yield f"| {t} | {estimate} | {found[t]:.2f} | {true} | {truth[t]:.2f} |"


def published_means(n_repeats=100):
    """Means of truth and estimate, ISTA and FISTA.

    n=200, p=400, ten equal coefficients of squared norm 25, noise level .5,
    alpha=.1, step n / ||X||^2; mean over 100 repeats, standard error of the
    ratio estimate / truth in brackets.
    """
    published = {
        "ista": {
            0: (25.25, 25.43),
            5: (11.67, 11.50),
            10: (7.83, 7.71),
            29: (1.75, 1.72),
        },
        "fista": {
            0: (25.25, 25.43),
            5: (10.04, 9.92),
            10: (3.51, 3.44),
            19: (0.30, 0.31),
        },
    }
    found = {solver: [] for solver in published}
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 400))
        beta = np.zeros(400)
        beta[:10] = np.sqrt(2.5)
        y = X @ beta + 0.5 * rng.standard_normal(200)
        step_size = 200 / np.linalg.norm(X, 2) ** 2
        for solver in published:
            model = TrajectoryLasso(
                0.1,
                solver=solver,
                step_size=step_size,
                max_iter=29,
                tol=0,
                fit_intercept=False,
                risk="exact",
                loo=False,
            ).fit(X, y)
            truth = true_risk(model.coef_path_, 0.0, beta, 0.25)
            found[solver].append((truth, model.risk_path_))
    yield (
        "| solver | iterate | published truth | ours | published estimate | ours "
        "| estimate / truth |"
    )
    yield "|---|---|---|---|---|---|---|"
    for solver, rows in published.items():
        truth, estimate = np.array(found[solver]).transpose(1, 0, 2)
        for t, (their_truth, their_estimate) in rows.items():
            mean, error = mean_ratio(estimate[:, t] / truth[:, t])
            yield (
                f"| {solver} | {t} | {their_truth} | {truth[:, t].mean():.2f} "
                f"| {their_estimate} | {estimate[:, t].mean():.2f} "
                f"| {mean:.3f} ({error:.3f}) |"
            )


def designs(n_repeats=200):
    """Mean of estimate / truth by kind of rows, without row scales and with them.

    n=300, coefficients of squared norm 4, noise level 1, intercept fitted, GD
    and ISTA with alpha=.05, exact traces; 200 repeats, standard error in
    brackets. "Even" is risk_row_scales=False, the published estimate, which
    gives every row the leverage of the average row; "scaled" the default, with
    the mean row_scale_share_ in the last column. The two groups of rows live on
    a half of the columns each, one of twice the size: their leverages do not
    follow their norms by one factor. (Published for GD at iterate
    10, at a signal of its own: Gaussian 1.03 / 1.03, AR(.5) 1.02 / 1.03,
    Rademacher 1.00 / 1.01, t5 rows .86 / .77 at p=150 / p=450.)
    """
    yield (
        "| rows | p | solver | t=10, even | t=10, scaled | t=30, even "
        "| t=30, scaled | share |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    kinds = ("Gaussian", "AR(.5)", "Rademacher", "t5 rows", "t3 rows", "two groups")
    models = {
        "GD": IterativeRidge(0.0, max_iter=30, tol=0),
        "ISTA": TrajectoryLasso(0.05, solver="ista", max_iter=30, tol=0, risk="exact"),
    }
    for number, kind in enumerate(kinds):
        for p in (150, 450):
            found = {solver: [] for solver in models}
            for seed in range(n_repeats):
                rng = np.random.default_rng([seed, number, p])
                X, root = rows_of(kind, 300, p, rng)
                for solver, row in ratios_on(X, root, rng, models).items():
                    found[solver].append(row)
            for solver, rows in found.items():
                *ratios, share = np.transpose(rows)
                cells = " | ".join(mean_cell(ratio) for ratio in ratios)
                yield f"| {kind} | {p} | {solver} | {cells} | {share.mean():.2f} |"


def ratios_on(X, root, rng, models):
    """Estimate / truth at iterates 10 and 30, even and scaled, and the share."""
    n, p = X.shape
    beta = np.zeros(p)
    beta[:20] = 2 / np.sqrt(20)
    y = X @ beta + rng.standard_normal(n) + 2.0
    found = {}
    for solver, model in models.items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The rows of X have very")
            even = model.set_params(risk_row_scales=False).fit(X, y).risk_path_
        scaled = model.set_params(risk_row_scales=True).fit(X, y).risk_path_
        error = model.coef_path_ - beta
        error = error if root is None else error @ root
        truth = (error**2).sum(axis=1) + (model.intercept_path_ - 2.0) ** 2 + 1
        ratios = [path[t] / truth[t] for t in (10, 30) for path in (even, scaled)]
        found[solver] = [*ratios, model.row_scale_share_]
    return found


def few_rows(n_repeats=50):
    """Few rows, many features: the chosen iterate's estimate over its true risk.

    n=35, p=4000, five coefficients, Gaussian rows, 50 repeats. Traces are
    exact, no probes. The least of a noisy path is optimistic.
    """
    models = {
        'TrajectoryLasso(alpha="path", max_iter=20)': TrajectoryLasso(
            "path", max_iter=20
        ),
        "TrajectoryLasso(alpha=0.5)": TrajectoryLasso(0.5),
        "IterativeRidge(alpha=0)": IterativeRidge(0.0),
    }
    yield (
        "| estimator | mean best_score_ / true risk | spread (s.d.) | min | max "
        "| mean true risk / null model's |"
    )
    yield "|---|---|---|---|---|---|"
    for name, model in models.items():
        ratios, gains = [], []
        for seed in range(n_repeats):
            X, y, beta = sparse_regression(35, 4000, 5, seed)
            model.set_params(random_state=seed)
            stopped = TrajectoryEarlyStoppingCV(model, criterion="risk").fit(X, y)
            assert stopped.estimator_.n_probes_ == 0
            assert np.isfinite(stopped.path_).all()
            truth = true_risk(stopped.coef_, stopped.intercept_, beta)
            null = true_risk(np.zeros(4000), y.mean(), beta)
            ratios.append(stopped.best_score_ / truth)
            gains.append(truth / null)
        ratios = np.array(ratios)
        yield (
            f"| {name} | {ratios.mean():.2f} | {ratios.std(ddof=1):.2f} "
            f"| {ratios.min():.2f} | {ratios.max():.2f} | {np.mean(gains):.2f} |"
        )


def probes(n_repeats=60):
    """Probes beside the error that the estimate has anyway.

    Exact traces and the probes of risk="auto" (at least ten, more where their
    standard error asks for it), ISTA with alpha=.01 sqrt(2000 / n) and the
    signal of Bellec & Tan's page; relative standard deviations.
    """
    yield (
        "| n | p | iterate | sqrt(2/n) | exact estimate / truth, s.d. "
        "| probes / exact, s.d. | claimed |"
    )
    yield "|---|---|---|---|---|---|---|"
    for n, p in ((200, 300), (400, 600)):
        rows = [5, 20, 50, 100]
        intrinsic, extra, claimed = [], [], []
        for seed in range(n_repeats):
            X, y, beta = sparse_regression(n, p, n // 10, seed)
            model = TrajectoryLasso(
                0.01 * np.sqrt(2000 / n), solver="ista", max_iter=100, tol=0, loo=False
            )
            exact = model.set_params(risk="exact").fit(X, y).risk_path_[rows]
            model.set_params(risk="auto", random_state=seed).fit(X, y)
            probed = model.risk_path_[rows]
            coef, intercept = model.coef_path_[rows], model.intercept_path_[rows]
            intrinsic.append(exact / true_risk(coef, intercept, beta))
            extra.append(probed / exact - 1)
            claimed.append(model.risk_mc_se_path_[rows] / probed)
        spread = np.std(intrinsic, axis=0, ddof=1)
        extra = np.sqrt(np.mean(np.square(extra), axis=0))
        claimed = np.sqrt(np.mean(np.square(claimed), axis=0))
        for t, own, added, said in zip(rows, spread, extra, claimed):
            yield (
                f"| {n} | {p} | {t} | {np.sqrt(2 / n):.3f} | {own:.3f} "
                f"| {added:.3f} | {said:.3f} |"
            )


def alpha_and_iteration(n_seeds=10):
    """A lasso's alpha and iteration from one run against LassoCV, over ten seeds.

    As ``python -m benchmarks path path-small`` has it over fewer.
    """
    yield from COLUMNS
    for name, sizes in {
        "path": alpha_paths.large,
        "path-small": alpha_paths.small,
    }.items():
        for row in sizes(n_seeds):
            yield Row(*row).markdown(name)


STUDIES = {
    "published-page": published_page,
    "published-means": published_means,
    "designs": designs,
    "few-rows": few_rows,
    "probes": probes,
    "alpha-and-iteration": alpha_and_iteration,
    "criteria": criteria,
    "regret": regret,
    "many-rows": many_rows,
    "patience": patience,
    "defaults": defaults,
    "default-probabilities": default_probabilities,
    "optimism": optimism,
    "intervals": intervals,
    "curved": curved,
    "curved-memory": curved_memory,
    "coverage": coverage,
    "nulls": nulls,
    "published-levels": published_levels,
    "converged": converged,
    "reach": computational_reach,
    "batch-sizes": batch_sizes,
    "norms": norms,
    "double-descent": double_descent,
    "noisy-digits": noisy_digits,
    "noisy-probabilities": noisy_probabilities,
    "random-labels": random_labels,
    "kernel-defaults": kernel_defaults,
    "summary-digits": summary_digits,
    "kernel-scores": kernel_scores,
}
# Studies of tables that are not part of the project.
OF_TABLES = {"kernel-scores"} if not FOLDER.exists() else set()


def printed(name):
    """Print a study as it goes on.

    Returns
    -------
    Section
    """
    title, *paragraphs = STUDIES[name].__doc__.split("\n\n")
    lines = [*(" ".join(paragraph.split()) for paragraph in paragraphs), ""]
    print(f"## {title}\n", *lines, sep="\n", flush=True)
    for line in STUDIES[name]():
        lines.append(line)
        print(line, flush=True)
    print()
    text = "\n".join(lines)
    return Section(title, f"python -m benchmarks.studies {name}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(STUDIES))
    parser.add_argument("--output", type=Path, help="Markdown file to put them in")
    arguments = parser.parse_args()
    names = arguments.names or [name for name in STUDIES if name not in OF_TABLES]
    found = [printed(name) for name in names]
    if arguments.output:
        write_sections(arguments.output, "Accuracy over repeats", found)
