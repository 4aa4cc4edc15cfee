"""Data to judge defaults by: those that scikit-learn ships, and ill-conditioned ones.

A set is a function of a seed that gives X, y and nothing else; :func:`halves` makes a
training half of standardised columns and a test half of it.
"""

from functools import partial

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

LABEL_NOISE = 0.2
FEW_ROWS = (40, 80, 160)


def shipped(load, seed):
    """A data set of scikit-learn, as it is."""
    return load(return_X_y=True)


def with_products(seed):
    """Diabetes with the squares and products of its columns, 442 x 65."""
    X, y = load_diabetes(return_X_y=True)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X), y


def linnerud(seed):
    """Weight from three exercises, 20 x 3."""
    X, y = load_linnerud(return_X_y=True)
    return X, y[:, 0]


def digits_as_numbers(seed):
    """The digit as a number, 1797 x 64."""
    X, y = load_digits(return_X_y=True)
    return X, y.astype(float)


def heavy_tails(seed):
    """Diabetes with t2 noise of half the targets' spread on top."""
    X, y = load_diabetes(return_X_y=True)
    noise = np.random.default_rng(seed).standard_t(2, len(y))
    return X, y + 0.5 * y.std() * noise


def spectra(seed, n=214, p=100):
    """Smooth columns, as of a spectrum: neighbours hardly differ, condition 1e6."""
    rng = np.random.default_rng(seed)
    index = np.linspace(0, 1, p)
    distance = np.subtract.outer(index, index)
    values, vectors = np.linalg.eigh(np.exp(-(distance**2) / (2 * 0.1**2)))
    spectrum = np.maximum(values, values.max() * 1e-12)
    X = rng.standard_normal((n, p)) * np.sqrt(spectrum) @ vectors.T
    signal = X @ np.sin(2 * np.pi * 3 * index) / np.sqrt(p)
    return X, signal + 0.3 * signal.std() * rng.standard_normal(n)


def genes(seed, n=200, p=4000, size=40):
    """Blocks of forty columns that share a factor; five of the blocks matter."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, p // size))
    X = 0.9 * np.repeat(factors, size, axis=1)
    X += np.sqrt(1 - 0.9**2) * rng.standard_normal((n, p))
    return X, factors[:, :5].sum(axis=1) + rng.standard_normal(n)


def noisy_labels(load, seed):
    """A fifth of the labels drawn anew."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(np.unique(y), len(y))
    return X, np.where(rng.random(len(y)) < LABEL_NOISE, drawn, y)


def few_rows(data, n_rows, seed):
    """Twice so many rows of a set, half of which train."""
    X, y = data(seed)
    rows = np.random.default_rng(seed).permutation(len(y))[: 2 * n_rows]
    return X[rows], y[rows]


breast_cancer = partial(shipped, load_breast_cancer)
REGRESSION = {
    "diabetes": partial(shipped, load_diabetes),
    "diabetes, products": with_products,
    **{
        f"diabetes, products, {n} rows": partial(few_rows, with_products, n)
        for n in FEW_ROWS
    },
    "diabetes, heavy tails": heavy_tails,
    "linnerud": linnerud,
    "digits as numbers": digits_as_numbers,
    "spectra": spectra,
    "genes": genes,
}
CLASSIFICATION = {
    "breast cancer": breast_cancer,
    **{
        f"breast cancer, {n} rows": partial(few_rows, breast_cancer, n)
        for n in FEW_ROWS
    },
    "breast cancer, noisy": partial(noisy_labels, load_breast_cancer),
    "digits": partial(shipped, load_digits),
    "digits, noisy": partial(noisy_labels, load_digits),
    "iris": partial(shipped, load_iris),
    "wine": partial(shipped, load_wine),
}


def halves(data, seed, stratified=False):
    """A training half with standardised columns, and the other half scaled alike."""
    return split(data, seed, 0.5, stratified)


def split(data, seed, test_size, stratified=False):
    """Training rows with standardised columns, and test rows scaled alike."""
    X, y = data(seed)
    stratify = y if stratified else None
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_size, random_state=seed, stratify=stratify
    )
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test
