"""A design is the linear map that it stands for, and never forms it."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.arrays import DenseDesign, design_of
from skacv.optim.design import EXACT_EIGENVALUE_SIZE
from skacv.optim.kernel import PassPredictors
from tests.optim.designs import (
    CHANGES,
    COLUMNS,
    CONSTANTS,
    KERNELS,
    centred,
    csr,
    dense,
    drawn,
    kernel,
    kernel_and_constant,
    kernel_in_blocks,
    scaled,
    stacked,
)

EVERY_KIND = pytest.mark.parametrize("kind", COLUMNS + KERNELS)
EVERY_CHANGE = pytest.mark.parametrize(
    "changes", CHANGES, ids=lambda changes: "-".join(c.__name__ for c in changes)
)
SHAPES = pytest.mark.parametrize("shape", [(13, 7), (7, 13)])


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


# --------------------------------------------------- what every design inherits


@EVERY_KIND
@EVERY_CHANGE
@SHAPES
def test_gradients_are_the_adjoint_of_predictors(kind, changes, shape, rng):
    """Predictors of a gradient are inner products of rows times the slopes."""
    design, features = drawn(kind, changes, rng, shape)
    assert design.shape[0] == len(features)
    slopes = rng.standard_normal((len(features), 3))
    coef = design.t_dot(slopes)
    assert coef.shape == (design.shape[1], 3)
    close(design.dot(coef), features @ features.T @ slopes)
    other = rng.standard_normal((len(features), 3))
    close(
        np.vdot(other, design.dot(coef)),
        np.vdot(features.T @ other, features.T @ slopes),
    )
    expected = ((features.T @ slopes) ** 2).sum(axis=0)
    if kind is kernel_and_constant or kind in CONSTANTS:
        expected -= coef[-1] ** 2
    close(design.squared_norm(coef, design.dot(coef)), expected)


@EVERY_KIND
@EVERY_CHANGE
@SHAPES
def test_inner_products_of_rows(kind, changes, shape, rng):
    design, features = drawn(kind, changes, rng, shape)
    inner = features @ features.T
    close(design.outer_gram(), inner)
    close(design.squared_row_norms(), np.diag(inner))
    slopes = rng.standard_normal((len(features), 2))
    product = design.smaller_gram_dot()
    if design.side == "columns":
        inner, slopes = features.T @ features, features.T @ slopes
    close(design.smaller_gram(), inner)
    close(product(slopes), inner @ slopes)


@EVERY_KIND
@EVERY_CHANGE
@pytest.mark.parametrize("index", [np.array([1, 4, 0]), np.array([2, 3]), slice(1, 4)])
def test_rows(kind, changes, index, rng):
    design, features = drawn(kind, changes, rng)
    part, expected = design.rows(index), features[index]
    slopes = rng.standard_normal((len(expected), 2))
    close(part.dot(design.t_dot(np.eye(len(features)))), expected @ features.T)
    close(design.dot(part.t_dot(slopes)), features @ expected.T @ slopes)
    close(part.squared_row_norms(), (expected**2).sum(axis=1))
    if not design.has_columns:
        predictor = rng.standard_normal((len(features), 2))
        along = PassPredictors(design, predictor)
        for times in (1, 2):
            along.add(index, slopes)
            followed = predictor + times * features @ expected.T @ slopes
            close(along.predictor(), followed)
            close(along.predictor(index), followed[index])


@EVERY_KIND
def test_a_row_may_be_there_twice(kind, rng):
    design, features = drawn(kind, (), rng)
    index = np.array([3, 3, 0])
    slopes = rng.standard_normal((3, 2))
    found = design.dot(design.rows(index).t_dot(slopes))
    close(found, features @ features[index].T @ slopes)


@EVERY_KIND
@EVERY_CHANGE
@SHAPES
def test_directions_are_unit_and_known_by_their_covectors(kind, changes, shape, rng):
    design, features = drawn(kind, changes, rng, shape)
    values, vectors = np.linalg.eigh(design.smaller_gram())
    norms, vectors = np.sqrt(values[-3:]), vectors[:, -3:]
    found = design.directions(vectors, norms)
    covectors = design.covectors(found)
    slopes = rng.standard_normal((len(features), 2))
    _, _, right = np.linalg.svd(features)
    right = right[:3][::-1].T  # the top three, in features
    # Signs are free.
    parts = covectors.T @ design.t_dot(slopes)
    close(np.abs(parts), np.abs(right.T @ features.T @ slopes))
    predictor = design.evaluate(covectors)
    close(np.abs(predictor), np.abs(features @ right))
    laid_out = found @ np.eye(3)
    close(design.dot(laid_out), predictor)
    close(covectors.T @ laid_out, np.eye(3))


@EVERY_KIND
@pytest.mark.parametrize("shape", [(13, 7), (7, 13), (300, 200), (200, 300)])
def test_eigenvalues(kind, shape, rng):
    design, features = drawn(kind, (centred, scaled), rng, shape)
    expected = np.linalg.svd(features, compute_uv=False) ** 2 / shape[0]
    found = design.spectrum()[::-1]
    close(found[: len(expected)], expected[: len(found)])
    close(found[len(expected) :], 0)
    top = design.top_eigenvalue()
    size = shape[0] if design.side == "rows" else shape[1]
    if size <= EXACT_EIGENVALUE_SIZE:
        assert top == pytest.approx(expected[0])
    else:  # from Lanczos iterations that end within 10%, never above, plus 2%
        assert expected[0] * 0.9 * 1.02 <= top <= expected[0] * 1.021


@pytest.mark.parametrize("kind", [dense, csr, kernel, kernel_in_blocks])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [50, 200])
@pytest.mark.parametrize("value", [0.0, 1.0, 1990.1])
def test_constant_rows_are_zero_when_centred(value, n_rows, dtype, kind, rng):
    X = np.full((n_rows, 3), value, dtype)
    weights = rng.random((n_rows, 1))
    weights /= weights.sum()
    design = kind(X)[0].centered(weights)
    assert design.is_zero()
    assert design.top_eigenvalue() == 0
    X = X.copy()
    X[0, 0] += 0.1 * max(value, 1)
    assert not kind(X)[0].centered(weights).is_zero()


@pytest.mark.parametrize("kind", [dense, csr, kernel, kernel_in_blocks])
def test_nothing_but_zeros(kind):
    assert kind(np.zeros((5, 2)))[0].is_zero()
    assert not kind(np.eye(5))[0].is_zero()


# ------------------------------------------------------------ designs of columns


@pytest.mark.parametrize("kind", COLUMNS)
@EVERY_CHANGE
def test_columns(kind, changes, rng):
    design, explicit = drawn(kind, changes, rng)
    n_columns = explicit.shape[1]
    coef = rng.standard_normal((n_columns, 3))
    close(design.dot(coef), explicit @ coef)
    slopes = rng.standard_normal((len(explicit), 3))
    close(design.t_dot(slopes), explicit.T @ slopes)
    close(design.gram(), explicit.T @ explicit)
    weights = rng.standard_normal((len(explicit), 1))
    close(design.weighted_gram(weights), explicit.T @ (weights * explicit))
    several = rng.standard_normal((len(explicit), 2))
    expected = np.einsum("if,ij,ik->fjk", several, explicit, explicit)
    close(design.weighted_grams(several), expected)
    index = np.array([0, 2, n_columns - 1])
    close(design.dense_columns(index, np.float64), explicit[:, index])
    norms, largest = design.column_sizes()
    assert (norms >= np.linalg.norm(explicit, axis=0) - 1e-12).all()
    assert (largest >= np.abs(explicit).max(axis=0) - 1e-12).all()


@pytest.mark.parametrize("kind", [dense, csr, *CONSTANTS])
@EVERY_CHANGE
def test_selections_of_columns(kind, changes, rng):
    design, explicit = drawn(kind, changes, rng)
    one, other = np.array([0, 2, 5]), np.array([1, explicit.shape[1] - 1])
    part = design.selection(one, np.float64)
    close(part.dot(np.eye(3)), explicit[:, one])
    both = part.joined_with(design.selection(other, np.float64))
    close(both.dot(np.eye(5)), explicit[:, [*one, *other]])
    both = design.selection(other, np.float64).joined_with(part)
    close(both.dot(np.eye(5)), explicit[:, [*other, *one]])
    close(design.columns(other, np.float64).dot(np.eye(2)), explicit[:, other])


@pytest.mark.parametrize("kind", [dense, csr, *CONSTANTS])
def test_all_columns_are_the_design_itself(kind, rng):
    design, features = drawn(kind, (), rng)
    assert design.columns(np.arange(features.shape[1]), np.float64) is design


def test_column_sizes_of_dense_data_are_exact(rng):
    for changes in CHANGES:
        design, explicit = drawn(dense, changes, rng)
        norms, largest = design.column_sizes()
        close(norms, np.linalg.norm(explicit, axis=0))
        close(largest, np.abs(explicit).max(axis=0))


def test_what_is_stored(rng):
    X = sparse.random(50, 40, 0.1, format="csr", random_state=0)
    assert design_of(X).n_stored == X.nnz
    assert design_of(X).n_bytes == X.data.nbytes
    array = X.toarray()
    assert design_of(array).n_stored == array.size
    assert stacked(array)[0].n_bytes == array[:25].nbytes + X[25:].data.nbytes


@pytest.mark.parametrize("kind", [dense, csr])
def test_float32_is_kept(kind, rng):
    X = rng.standard_normal((10, 4)).astype(np.float32)
    design = kind(X)[0].centered(np.full((10, 1), 0.1))
    coef = np.ones((4, 2), np.float32)
    other = design.scaled_rows(np.linspace(1, 2, 10)[:, None])
    for each in (design, other):
        assert each.dot(coef).dtype == np.float32
        assert each.t_dot(each.dot(coef)).dtype == np.float32


def test_no_copy_of_dense_data(rng):
    X = rng.standard_normal((10, 4))
    design = design_of(X).centered(np.full((10, 1), 0.1))
    assert design.X is X
    assert design.scaled_rows(np.ones((10, 1))).X is X


def test_sparse_data_are_not_densified(rng, monkeypatch):
    X = sparse.random(50, 40, 0.1, format="csr", random_state=0)
    design = design_of(X).centered(np.full((50, 1), 0.02)).scaled_rows(np.ones((50, 1)))

    def refuse(*args, **kwargs):
        raise AssertionError("X was made dense")

    monkeypatch.setattr(type(X), "toarray", refuse)
    monkeypatch.setattr(type(X), "todense", refuse)
    design.t_dot(design.dot(np.ones((40, 2))))
    design.columns(np.arange(10), np.float32).dot(np.ones((10, 1), np.float32))
    design.squared_row_norms()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(300, 20), (20, 300)])
def test_large_means_do_not_cancel_digits(shape, scaled, rng):
    X = rng.standard_normal(shape)
    weights = rng.random((shape[0], 1))
    weights /= weights.sum()
    far = (X + 1000).astype(np.float32)  # known to 6e-5
    near = design_of(X).centered(weights)
    design = design_of(far).centered(weights)
    if scaled:
        scale = rng.uniform(0.5, 2, (shape[0], 1))
        near, design = near.scaled_rows(scale), design.scaled_rows(scale)
    for name in ("gram", "outer_gram", "spectrum", "top_eigenvalue"):
        expected = getattr(near, name)()
        found = getattr(design, name)()
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.max(expected))
    signed = rng.standard_normal((shape[0], 1)).astype(np.float32)
    expected = near.weighted_gram(signed)
    error = np.abs(design.weighted_gram(signed) - expected).max()
    assert error < 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(
        design.squared_row_norms(), near.squared_row_norms(), rtol=1e-3
    )


@pytest.mark.parametrize("n_vectors", [1, 2, 6, 7, 12, 13])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_in_small_slices_are_those_of_all_rows(dtype, order, n_vectors, rng):
    """With few vectors rows are taken some at a time; the last slice is shorter."""
    X = np.asarray(rng.standard_normal((70_001, 8)), dtype, order=order)
    design = DenseDesign(X)
    coef = rng.standard_normal((8, n_vectors)).astype(dtype)
    slopes = rng.standard_normal((len(X), n_vectors)).astype(dtype)
    found, transposed = design.dot(coef), design.t_dot(slopes)
    assert found.dtype == transposed.dtype == dtype
    exact = X.astype(np.float64)
    units = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, exact @ coef, 0, units * 8)
    size = np.abs(exact).T @ np.abs(slopes)
    assert (np.abs(transposed - exact.T @ slopes) <= units * size).all()


@pytest.mark.parametrize(
    ("stored", "wanted"), [("f8", "f4"), ("f4", "f8"), ("f4", "f4")]
)
def test_centred_columns_keep_their_digits_in_another_precision(stored, wanted, rng):
    """Means a million times the spread are taken off in the wider precision."""
    X = (1e6 + rng.standard_normal((40, 5))).astype(stored)
    weights = np.full((40, 1), 1 / 40)
    design, index = design_of(X).centered(weights), np.array([0, 3])
    expected = (X[:, index].astype(np.float64) - design.center[index].T).astype(wanted)
    found = design.dense_columns(index, np.dtype(wanted))
    assert found.dtype == wanted
    eps = np.finfo(min(stored, wanted, key=lambda name: int(name[1]))).eps
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * eps)


@pytest.mark.parametrize("kind", [dense, csr])
@pytest.mark.parametrize(
    "name", ["dot", "t_dot", "gram", "weighted_gram", "squared_row_norms", "sizes"]
)
def test_single_precision_is_converted_in_blocks(kind, name, rng):
    """Sums are those of double precision, and X is never copied to it."""
    X = rng.standard_normal((20_000, 150), dtype=np.float32)
    X[rng.random(X.shape, dtype=np.float32) < 0.5] = 0
    weights = np.full((len(X), 1), 1 / len(X))
    designs = [kind(values)[0].centered(weights) for values in (X, X.astype(float))]
    calls = {
        "dot": lambda design: design.dot(np.ones((150, 1))),
        "t_dot": lambda design: design.t_dot(weights - weights[0] * (X[:, :1] > 0)),
        "gram": lambda design: design.gram(),
        "weighted_gram": lambda design: design.weighted_gram(weights),
        "squared_row_norms": lambda design: design.squared_row_norms(),
        "sizes": lambda design: design.column_sizes()[0],
    }
    tracemalloc.start()
    single = calls[name](designs[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * X.nbytes  # a copy would take twice as much as X
    double = calls[name](designs[1])
    scale = np.abs(double).max()
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-12 * scale)
