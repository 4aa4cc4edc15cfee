"""How fast and how small are we beside each opponent, in one process? ``make bench``.

Every row alternates the two sides and takes the median of their times, BLAS threads as
found. A ratio is opponent over ours where we should be faster, and ours over the
reference where a cost is bounded.
"""

from functools import partial

from .framework import arguments, named_rows, report
from .speed import classifiers, kernels, lasso, left_out_rows, memory_matrix, staged

BENCHMARKS = {
    "textbook": memory_matrix.textbook,
    "bare": memory_matrix.bare_loop,
    "curved": memory_matrix.curved,
    "path": partial(lasso.path, "path", n_seeds=3),
    "path-small": partial(lasso.path, "path-small", n_seeds=5),
    "loo": left_out_rows.leave_one_out,
    "folds": left_out_rows.folds,
    "ridge": partial(left_out_rows.ridge, 2000, 200, 1000),
    "ridge-large": partial(left_out_rows.ridge, 10_000, 500, 500),
    "logistic": left_out_rows.logistic,
    "kernel": kernels.one_fit,
    "digits": kernels.digits,
    "tall": lasso.tall,
    "small": lasso.small,
    "tall-classes": classifiers.tall,
    "logistic-default": classifiers.logistic,
    "svc-default": classifiers.linear_svc,
    "kernel-default": kernels.default,
    "memory": memory_matrix.memory,
    "kernel-memory": kernels.memory,
    "staged": staged.staged,
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS)
    report("Speed and memory", named_rows(BENCHMARKS, args.names), args.output)
