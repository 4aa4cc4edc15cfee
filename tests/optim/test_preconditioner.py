"""EigenPro's preconditioner: against the whole decomposition."""

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.preconditioner import Preconditioner, automatic_subsample_size
from skacv.optim.run import run
from skacv.optim.schedules import EigenPro, GradientDescent, fixed_batches
from skacv.optim.trajectory import Phase
from tests.optim.designs import csr, dense, kernel, kernel_in_blocks
from tests.optim.test_schedules import NO_PENALTY, final, quadratic

SHAPES = [(50, 12), (20, 60), (300, 200)]


def drawn(shape, rng, kind=dense):
    """A centred design, and the features of its rows."""
    X = rng.standard_normal(shape) * np.geomspace(5, 0.5, shape[1])
    design, features = kind(X)
    weights = np.full((shape[0], 1), 1 / shape[0])
    return design.centered(weights), features - weights.T @ X


@pytest.mark.parametrize("kind", [dense, csr, kernel, kernel_in_blocks])
@pytest.mark.parametrize("n_components", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_top_directions_come_down_to_the_next(shape, n_components, kind, rng):
    design, features = drawn(shape, rng, kind)
    rows = np.sort(rng.choice(shape[0], shape[0] // 2, replace=False))
    found = Preconditioner.of(design, rows, n_components, rng)
    sample = features[rows]
    values, vectors = np.linalg.eigh(sample.T @ sample / len(rows))
    values, top = values[::-1], vectors[:, ::-1][:, :n_components]
    share = (values[n_components] / values[:n_components]) ** 0.95
    matrix = np.eye(shape[1]) - (top * (1 - share)) @ top.T
    expected = features @ matrix @ features.T
    slopes = np.eye(shape[0])
    inner = design.dot(found.dot(design.t_dot(slopes)))
    # Randomised iterations find the directions of the largest one to some digits.
    size = np.abs(expected).max()
    tolerance = 1e-9 if shape[0] < 300 else 1e-2
    np.testing.assert_allclose(inner, expected, rtol=0, atol=tolerance * size)
    twice = found.root(found.root(design.t_dot(slopes)))
    np.testing.assert_allclose(design.dot(twice), inner, rtol=0, atol=1e-12 * size)
    norms = found.squared_row_norms(design)
    np.testing.assert_allclose(norms, np.diag(inner), rtol=1e-9)
    largest = np.linalg.eigvalsh(inner / shape[0])[-1]
    assert largest <= found.top_eigenvalue(design, rng) * (1 + 1e-12) <= 1.03 * largest
    own = np.linalg.eigvalsh(inner[np.ix_(rows, rows)] / len(rows))[-1]
    assert found.sample_eigenvalue == pytest.approx(own, rel=1e-2)
    assert len(found.rows) == (len(rows) if n_components else 0)


def test_those_of_the_same_rows_are_equal(rng):
    design, _ = drawn((50, 12), rng)
    rows = np.arange(20)
    one, same, other = (
        Preconditioner.of(design, rows, q, np.random.default_rng(0)) for q in (3, 3, 4)
    )
    assert one == same
    assert all(one != different for different in (other, None, 0))


def test_directions_that_are_rounding_are_not_used(rng):
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 10))
    found = Preconditioner.of(design_of(X), np.arange(20), 5, rng)
    assert len(found.damping) == 1


def test_without_directions_the_schedule_is_gradient_descent(rng):
    problem = quadratic(rng)
    nothing = Preconditioner.of(problem.design, np.arange(10), 0, rng)
    np.testing.assert_allclose(
        final(problem, EigenPro(0.1, nothing), 20),
        final(problem, GradientDescent(0.1), 20),
    )


@pytest.mark.parametrize("batch_size", [None, 7])
def test_largest_stable_step(batch_size, rng):
    problem = quadratic(rng)
    made = Preconditioner.of(problem.design, np.arange(20), 3, rng)
    batches = fixed_batches(30, batch_size, 0)
    parts = [problem.design.rows(rows) for rows in batches]
    largest = max(made.top_eigenvalue(part, rng) for part in parts or [problem.design])
    phase = Phase(NO_PENALTY, EigenPro(1.0, made, largest), 1)
    stable = phase.schedule.largest_stable_step(phase.smoothness(problem))
    assert stable == pytest.approx(2 / largest)

    def objective(share):
        own = EigenPro(share * stable, made, largest, batches)
        start = np.zeros((1, 8, 1))
        trajectory = run(problem, [Phase(NO_PENALTY, own, 300)], start)
        return problem.objectives(trajectory)

    assert objective(0.97)[-1] < objective(0.97)[0]
    if batch_size is None:
        with pytest.raises(ValueError, match="largest stable step"):
            objective(1.05)


def test_batches_are_the_same_in_every_pass(rng):
    problem = quadratic(rng)
    made = Preconditioner.of(problem.design, np.arange(20), 3, rng)
    steps = EigenPro(0.1, made, 0.0, fixed_batches(30, 7, 5)).updates()
    first, second = next(steps), next(steps)
    assert sorted(np.concatenate(first.batches)) == list(range(30))
    for one, other in zip(first.batches, second.batches):
        np.testing.assert_array_equal(one, other)


def test_automatic_subsample():
    assert [automatic_subsample_size(n) for n in (2, 90, 3000, 9000, 10**6)] == [
        1,
        30,
        500,
        900,
        2000,
    ]
