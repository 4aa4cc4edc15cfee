"""How much faster are fits with X on a device than in NumPy on the same machine?

Needs torch: ``make bench-device``, or, of a GPU and at full size,

    SCIPY_ARRAY_API=1 python -m benchmarks.device --device cuda --full

Moving X to the device is not in its seconds. Every fit is run once small before it is
timed. ``--dtype`` is float32 or float64. TF32 is left off, as torch has it; with it
products are refused.
"""

import os

# Before SciPy is there: scikit-learn dispatches on arrays with it only.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import torch
from sklearn import config_context

from skacv import KernelEigenProRegressor, TrajectoryLasso

from .framework import arguments, race, report

# Rows and columns.
SMALL = {"kernel": (4000, 20), "path": (300, 1200)}
FULL = {"kernel": (100_000, 50), "path": (5000, 20_000)}
EPOCHS = {"small": 5, "full": 10}


def kernel(shape, dtype, n_epochs):
    """EigenPro of a Gaussian kernel, with leave-one-out by random labels."""
    n, p = shape
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)).astype(dtype)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n)
    model = KernelEigenProRegressor(
        gamma=1 / (2 * p),
        solver="eigenpro",
        max_iter=n_epochs,
        patience=None,
        n_probes=10,
        random_state=0,
    )
    return f"kernel EigenPro {n} x {p}, {n_epochs} epochs", model, X, y, "loo_path_"


def path(shape, dtype, n_epochs):
    """The lasso along its strengths, with the memory matrix."""
    n, p = shape
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)).astype(dtype)
    y = X[:, : n // 10].sum(axis=1) / np.sqrt(n // 10) + rng.standard_normal(n)
    model = TrajectoryLasso(
        "path", max_iter=20, tol=0, risk=True, loo=False, random_state=0
    )
    return f"lasso path {n} x {p} with risk", model, X, y, "risk_path_"


FITS = {"kernel": kernel, "path": path}


def compared(name, sizes, dtype, device, n_epochs, repeats):
    """A row: seconds on the device and in NumPy, and how far its estimate is off."""
    fit_there, *_ = _fits(FITS[name](SMALL[name], dtype, 1), device)
    fit_there()
    case = FITS[name](sizes[name], dtype, n_epochs)
    work, *_, estimate = case

    def said(results, expected):
        same = getattr(results, estimate).cpu().numpy()
        off = np.abs(same / getattr(expected, estimate) - 1)
        return f"{estimate} off by {np.median(off):.0e}, at most {off.max():.0e}"

    work = f"{work}, {np.dtype(dtype).name}"
    return race(work, "NumPy", *_fits(case, device), said, repeats)


def _fits(case, device):
    """The fit on the device, and that in NumPy."""
    _, model, X, y, _ = case
    y = y.astype(X.dtype)
    X_there, y_there = (torch.asarray(array, device=device) for array in (X, y))

    def on_device():
        with config_context(array_api_dispatch=True):
            return model.__class__(**model.get_params()).fit(X_there, y_there)

    def in_numpy():
        return model.__class__(**model.get_params()).fit(X, y)

    return on_device, in_numpy


def name_of(device):
    """What a device is called."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"torch's {device}, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    options = {"device": "cpu", "full": False, "dtype": "float32", "repeats": 3}
    args = arguments(__doc__, FITS, **options)
    size, sizes = ("full", FULL) if args.full else ("small", SMALL)
    settings = args.dtype, args.device, EPOCHS[size], args.repeats
    rows = ((name, compared(name, sizes, *settings)) for name in args.names or FITS)
    title = f"X on a device: {name_of(args.device)}, {size} sizes"
    report(title, rows, args.output, ["torch", "array-api-compat"])
