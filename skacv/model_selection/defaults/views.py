"""Views of the codes of a table: the columns that an estimator is fitted to."""

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from ..._compat import target_encoder
from ..._estimator.run.recording import RecordsTrajectory
from ...kernel import KernelEigenProClassifier, KernelEigenProRegressor
from ...staged import Staged
from ...staged.adapters import (
    Baggings,
    Forests,
    HistBoosting,
    PerOutput,
    PlainBoosting,
    RefitAdapter,
    staged_adapter_of,
)
from ...staged.catboost_boosters import CatBoost
from ...staged.fits import clone_estimator
from ...staged.lightgbm_boosters import LightGBM
from ...staged.xgboost_boosters import XGBoost
from ...tables.one_hot import OneHotCodes, numbers_and_categories
from .parts import Parts, TargetMeans
from .strongest_columns import StrongestColumns

# Trees have a column for each level of a category with so many levels at most: of more,
# a split on one level changes few rows, and among the columns drawn for a split most
# would be levels. More levels become means of y.
MOST_ONE_HOT = 10
# Histograms take a category itself with so many levels at most. Sums of gradients by
# level, which order the levels for a split, are not shrunk as means of y are: with more
# levels these are better where rows are few, and no worse where they are many.
MOST_NATIVE = 30
# With so few rows they have a column for each level instead, however many: a split on
# levels in the order of their gradients fits noise. Categories with more levels than
# bins have means of y as well. Forests, which are in the same portfolio, have means.
FEW_ROWS = 2000
# Parameters that name columns of X, or have a value for each of them.
OF_COLUMNS = {
    "categorical_features",
    "categorical_feature",
    "categorical_column",
    "cat_feature",
    "cat_features",
    "feature_types",
    "feature_weights",
    "groups",
    "interaction_constraints",
    "interaction_cst",
    "monotone_constraints",
    "monotonic_cst",
    "text_features",
    "embedding_features",
}
# Values with which they do not.
NO_COLUMNS = None, False, "from_dtype", "pairwise", "no_interactions"


def check_takes_codes(estimator):
    """Raise if steps or parameters of an estimator are for columns of X, not codes."""
    name = type(estimator).__name__
    advice = "with an encoder: set encoder=None, which passes X on unchanged"
    if isinstance(estimator, Pipeline):
        raise ValueError(
            "A Pipeline, whose steps refer to columns of X, cannot be a member "
            f"{advice}, or use its last step, {type(estimator[-1]).__name__}, alone."
        )
    params = estimator.get_params(deep=False)
    for key in sorted(OF_COLUMNS & params.keys()):
        value = params[key]
        is_of_none = isinstance(value, str | bool | None) and value in NO_COLUMNS
        is_number_of_groups = key == "groups" and np.ndim(value) == 0
        if not (is_of_none or is_number_of_groups):
            raise ValueError(
                f"{name} with {key}={value!r}, which refers to columns of X, cannot "
                f"be a member {advice}, or leave {key} out."
            )
    if params.get("kernel") == "precomputed":
        raise ValueError(
            f'{name} with kernel="precomputed", which has no columns, cannot be a '
            f"member {advice}."
        )


def n_tree_columns(encoder):
    """Number of columns that forests see of a table."""
    n_levels = [len(column.levels or ()) for column in encoder.columns_]
    return sum(n if 2 < n <= MOST_ONE_HOT else 1 for n in n_levels)


def has_means(encoder, n_outputs):
    """Whether forests see means of y in the place of categories of many levels."""
    return n_outputs == 1 and bool(_find_many_levels(encoder.columns_, MOST_ONE_HOT))


def choose_view(estimator, encoder, n_outputs=1):
    """An estimator to fit on a view of a table, and the transformer of codes to it."""
    # The transformer is not fitted; None: the codes are the view. Steps that read y are
    # in a pipeline inside the estimator, which Staged fits in every fold. Categories
    # become means of y only if it has one column.
    if isinstance(estimator, Pipeline) and isinstance(estimator[0], StrongestColumns):
        return _strongest(estimator, encoder, n_outputs)
    if not isinstance(estimator, Staged):
        check_takes_codes(estimator)
        is_recorded = isinstance(estimator, RecordsTrajectory)
        adapter = estimator if is_recorded else staged_adapter_of(estimator)
        make = VIEWS.get(type(adapter), _standardised)
        return make(estimator, encoder, n_outputs)
    inner, transformer = choose_view(estimator.estimator, encoder, n_outputs)
    if inner is estimator.estimator:
        return estimator, transformer
    return clone(estimator).set_params(estimator=inner), transformer


def _strongest(pipeline, encoder, n_outputs):
    """The view of the last step, of which it sees the strongest columns."""
    (name, strongest), (name_of_last, last) = pipeline.steps
    last, transformer = choose_view(last, encoder, n_outputs)
    *before, last = last.steps if isinstance(last, Pipeline) else [(name_of_last, last)]
    if isinstance(last[1].get_params().get("categorical_features"), list):
        return Pipeline([*before, last]), transformer  # it names columns by number
    return Pipeline([*before, (name, strongest), last]), transformer


def _standardised(estimator, encoder, n_outputs):
    """One-hot columns, medians and indicators, which the estimator standardises."""
    if "standardize" in estimator.get_params(deep=False):
        return estimator, encoder.one_hot()
    return _scaled(estimator, encoder, n_outputs)


def _kernels(estimator, encoder, n_outputs):
    """Numbers of unit size and one-hot columns, where the columns are standardised."""
    if not estimator.standardize:
        return estimator, encoder.one_hot()
    return _scaled(clone(estimator).set_params(standardize=False), encoder, n_outputs)


def _scaled(estimator, encoder, n_outputs):
    """Numbers of unit size, and one-hot columns as they are."""
    # Two levels are then as far apart as two values of a number on average.
    # Standardised, rare levels would be far from the rest, and categories count more
    # than numbers.
    return estimator, encoder.one_hot().set_params(scaled=True)


def _tree_columns(estimator, encoder, n_outputs):
    """A column for each level of a category, or means of y if it has many."""
    columns = encoder.columns_
    numbers, categories = numbers_and_categories(columns)
    many = _find_many_levels(columns, MOST_ONE_HOT)
    few = [index for index in categories if index not in many]
    takes_missing = get_tags(estimator).input_tags.allow_nan
    filled = "passthrough" if takes_missing else _every_level(columns, numbers)
    parts = [(filled, numbers), (_every_level(columns, few), few)]
    return _add_many_levels(estimator, parts, many, encoder, n_outputs)


def _ensembles(estimator, encoder, n_outputs):
    """The columns of trees, unless the ensemble is of other estimators."""
    make = _tree_columns if estimator.estimator is None else _standardised
    return make(estimator, encoder, n_outputs)


def _every_level(columns, indices):
    """One-hot columns of some of the columns, also for rare levels."""
    return OneHotCodes([columns[index] for index in indices], drop="if_binary")


def _histograms(estimator, encoder, n_outputs):
    """The codes themselves, if rows are many; means of y for many levels."""
    columns, most = encoder.columns_, estimator.max_bins
    if encoder.n_samples_ <= FEW_ROWS:
        numbers, categories = numbers_and_categories(columns)
        levels = [columns[index] for index in categories]
        levels = OneHotCodes(levels, encoder.min_frequency, drop="if_binary")
        parts = [("passthrough", numbers), (levels, categories)]
        # Most of hundreds of levels are rare, and have no column.
        many = _find_many_levels(columns, most if n_outputs == 1 else np.inf)
        return _add_many_levels(estimator, parts, many, encoder, n_outputs)
    if n_outputs == 1:  # of several there are no means
        most = min(most, MOST_NATIVE)
    many = _find_many_levels(columns, most)
    rest = [index for index in range(len(columns)) if index not in many]
    categories = [k for k, index in enumerate(rest) if columns[index].levels]
    if categories:
        estimator = clone(estimator).set_params(categorical_features=categories)
    parts = [("passthrough", rest)]
    return _add_many_levels(estimator, parts, many, encoder, n_outputs)


def _lightgbm(estimator, encoder, n_outputs):
    """The codes themselves: negative ones count as missing."""
    _, categories = numbers_and_categories(encoder.columns_)
    if categories:
        estimator = clone_estimator(estimator).set_params(categorical_column=categories)
    return estimator, None


def _xgboost(estimator, encoder, n_outputs):
    """The codes; those of unseen levels are missing."""
    _, categories = numbers_and_categories(encoder.columns_)
    if not categories:
        return estimator, None
    types = ["q" if column.levels is None else "c" for column in encoder.columns_]
    settings = {"enable_categorical": True, "feature_types": types}
    estimator = clone_estimator(estimator).set_params(**settings)
    return estimator, _make_transformer(mask_unseen, categories)


def _outputs(estimator, encoder, n_outputs):
    """The view of the estimator of each output."""
    inner, transformer = choose_view(estimator.estimator, encoder, n_outputs)
    return clone_estimator(estimator).set_params(estimator=inner), transformer


def _catboost(estimator, encoder, n_outputs):
    """The codes as integers, those of missing values among them."""
    _, categories = numbers_and_categories(encoder.columns_)
    if not categories:
        return estimator, None
    estimator = clone_estimator(estimator).set_params(cat_features=categories)
    return estimator, _make_transformer(cast_to_integers, categories)


def _make_transformer(function, indices):
    """A transformer of codes that changes some of the columns."""
    transformer = FunctionTransformer(
        function, kw_args={"indices": indices}, feature_names_out="one-to-one"
    )
    return transformer.set_output(transform="default")


def mask_unseen(codes, indices):
    """Codes with NaN where they are negative in these columns."""
    codes = codes.copy()
    categories = codes[:, indices]
    codes[:, indices] = np.where(categories < 0, np.nan, categories)
    return codes


def cast_to_integers(codes, indices):
    """Codes as objects: integers in these columns, -2 where missing."""
    mixed = codes.astype(object)
    categories = codes[:, indices]
    mixed[:, indices] = np.where(np.isnan(categories), -2, categories).astype(int)
    return mixed


def _find_many_levels(columns, most):
    """Indices of the categories with more than ``most`` levels."""
    return [i for i, column in enumerate(columns) if len(column.levels or ()) > most]


def _add_many_levels(estimator, parts, many, encoder, n_outputs):
    """The view of ``parts``, as in Parts, and of columns of many levels."""
    # Columns of many levels become means of y, or with several outputs a column for
    # each frequent level.
    parts = [part for part in parts if part[1]]
    if not many and all(step == "passthrough" for step, _ in parts):
        return estimator, None
    if many and n_outputs == 1:
        encoder_of_means = target_encoder(estimator).set_output(transform="default")
        parts.append((TargetMeans(encoder_of_means), many))
    elif many:
        columns = [encoder.columns_[index] for index in many]
        limits = encoder.min_frequency, encoder.max_levels
        parts.append((OneHotCodes(columns, *limits), many))
    transformer = Parts(parts).set_output(transform="default")
    if not many or n_outputs > 1:
        return estimator, transformer
    return Pipeline([("columns", transformer), ("model", estimator)]), None


VIEWS = {
    KernelEigenProRegressor: _kernels,
    KernelEigenProClassifier: _kernels,
    HistBoosting: _histograms,
    PlainBoosting: _tree_columns,
    Forests: _tree_columns,
    Baggings: _ensembles,
    RefitAdapter: _ensembles,
    PerOutput: _outputs,
    LightGBM: _lightgbm,
    XGBoost: _xgboost,
    CatBoost: _catboost,
}
