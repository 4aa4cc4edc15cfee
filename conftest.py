"""Which doctests are collected: those of extras where their libraries are installed."""

from importlib.util import find_spec

# By the folder of what needs them. Dask itself comes with distributed, which the tests
# of joblib's backends need; its dataframes need pyarrow.
EXTRAS = {"jax": ("jax", "optax"), "torch": ("torch",), "dask": ("dask", "pyarrow")}
MISSING = [
    extra for extra, libraries in EXTRAS.items() if not all(map(find_spec, libraries))
]
collect_ignore = [f"skacv/{extra}" for extra in MISSING]


def pytest_report_header():
    return [
        f"skipped: tests and doctests of skacv.{extra}, which need skacv[{extra}]"
        for extra in MISSING
    ]
