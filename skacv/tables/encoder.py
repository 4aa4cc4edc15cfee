"""The transformer of tables."""

from itertools import combinations
from numbers import Integral, Real
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from .._compat import (
    Interval,
    StrOptions,
    _check_feature_names_in,
    _fit_context,
    _get_output_config,
    _num_samples,
)
from .._estimator.data.checks import names_infinite_columns, rows_that_count
from .._estimator.parameters import set_parameters
from .cells import Table
from .columns import CodedColumn, fit_column, tf_idf_of
from .one_hot import OneHotCodes, make_distinct

# Kinds of columns of which an array of numbers has the codes.
NUMERIC = "number", "boolean"
# The part of a date whose difference is the time between two of them.
SECONDS = "total_seconds"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a raw table as numbers.

    X may be a frame of pandas, polars, Arrow or another library that narwhals reads,
    an array of numbers or objects, lists, or a sparse matrix. ``fit`` decides from the
    training rows what each column contains:

    * **numbers**, also as strings such as "1.5", but not "007" or "1e5", which are
      codes; booleans become 0 and 1.
    * **dates**, with or without a time zone, also as ISO 8601 strings or in another
      format with an unambiguous order of day, month and year: seconds since 1970, and
      month, day, weekday (Monday is 0) and hour if they vary. Up to four date columns
      also give the seconds between each two. **Durations**: seconds.
    * **texts**, such as sentences: strings that have at least five words on average and
      each occur at most twice on average; words of two letters or more without digits
      count. They become the first 30 singular components of the tf-idf of all rows,
      which counts parts of words, three or four characters long, or whole words in
      columns of more than ten million characters. Texts that are missing, or have no
      known term, are zeros.
    * **categories**: all other strings, and columns of a category dtype.

    None, NaN, NaT, ``pandas.NA``, empty strings, and strings such as "NA", "null" and
    "?" are missing values. Constant and empty columns are dropped, and so are other
    strings none of which occurs twice.

    The result depends on the values only, not on the type of frame or array. Frames may
    have their columns in another order than in ``fit``, and additional ones. Read more
    in the :doc:`user guide </guide/tables>`.

    Parameters
    ----------
    categories : {"onehot", "codes"}, default="onehot"
        "onehot", for linear models, kernels and networks: one column per level, medians
        for missing numbers, and indicators of missing values. "codes", for trees: the
        output of ``codes``.
    min_frequency : int, float or None, default=3
        Levels in fewer rows than this number, or share, have one column together. None:
        each level has its own.
    max_levels : int or None, default=100
        Maximum number of columns per category; the rarest levels have one together.
        None: no limit.
    drop : {"first", "if_binary"} or None, default=None
        Drops one level of every category ("first"), or of those with two levels. Tests
        of coefficients need "first", since all levels are collinear with the intercept;
        penalised models do not.

    Attributes
    ----------
    kinds_ : dict of str to str
        What each kept column contains: "number", "boolean", "category", "text", "date"
        or "duration".
    categories_ : dict of str to list of str
        The levels of each category, sorted.
    dropped_ : dict of str to str
        Why each of the other columns was dropped.
    columns_ : list of CodedColumn
        The columns of ``codes``: ``name``, ``levels`` (None for numbers),
        ``has_missing`` and ``is_of_text``, for components of texts.
    transformer_ : transformer or None
        With "onehot": the transformer of the codes, with its ``imputer_``, a
        ``SimpleImputer``, and ``encoders_``, one ``OneHotEncoder`` per category.
    n_samples_ : int
        Number of rows in ``fit`` with positive weight.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they are strings.

    Raises
    ------
    ValueError
        If no column is kept, names are not unique, numbers are infinite, or columns
        contain something else than in ``fit``.

    See Also
    --------
    SelfStoppingRegressor : Accepts raw tables.
    sklearn.feature_extraction.text.TfidfVectorizer : The tf-idf of texts.
    sklearn.decomposition.TruncatedSVD : Its components.

    Examples
    --------
    >>> import pandas as pd
    >>> from skacv import TableEncoder
    >>> X = pd.DataFrame(
    ...     {
    ...         "age": [31, 45, None, 27],
    ...         "city": ["Oslo", "Rome", "Oslo", None],
    ...         "ward": ["a1", "b7", "c2", "d9"],
    ...         "seen": pd.to_datetime(["2024-01-08", "2024-01-09"] * 2),
    ...     }
    ... )
    >>> encoder = TableEncoder("codes").fit(X)
    >>> encoder.kinds_
    {'age': 'number', 'city': 'category', 'seen': 'date'}
    >>> encoder.dropped_
    {'ward': 'no text occurs twice'}
    >>> encoder.codes(X)[:, :2]
    array([[31.,  0.],
           [45.,  1.],
           [nan,  0.],
           [27., nan]])
    >>> encoder.set_params(categories="onehot", min_frequency=None).fit(X)
    TableEncoder(min_frequency=None)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'seen_total_seconds', 'seen_day', 'seen_weekday', 'age_missing', \
'city_Oslo', 'city_Rome', 'city_missing']
    """

    # Inside pipelines it asks for the weights of the rows.
    __metadata_request__fit = {"sample_weight": True}
    _parameter_constraints = {
        "categories": [StrOptions({"onehot", "codes"})],
        "min_frequency": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "max_levels": [Interval(Integral, 1, None, closed="left"), None],
        "drop": [StrOptions({"first", "if_binary"}), None],
    }

    def __init__(
        self,
        categories: Literal["onehot", "codes"] = "onehot",
        *,
        min_frequency: float | None = 3,
        max_levels: int | None = 100,
        drop: Literal["first", "if_binary"] | None = None,
    ) -> None:
        set_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | float | None = None
    ) -> Self:
        """Determine what each column contains and how it is encoded.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_samples,) or float, default=None
            Weights of the rows in medians, scales and components of texts; rows of
            weight zero are ignored. Frequencies of levels and words count rows, or
            their copies if all weights are integer multiples of the smallest.

        Returns
        -------
        self : object
            Fitted encoder.
        """
        self._fit_codes(X, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | float | None = None
    ) -> Any:
        """Fit to rows and transform them.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_samples,) or float, default=None
            As in :meth:`fit`.

        Returns
        -------
        {ndarray, DataFrame} of shape (n_samples, n_features_out)
        """
        codes = self._fit_codes(X, sample_weight)
        is_of_all = len(codes) == _num_samples(X)
        return self._transform_codes(codes if is_of_all else self.codes(X), X)

    def transform(self, X: Any) -> Any:
        """Numbers of some rows: those of :meth:`codes`, or one-hot columns.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Columns of a frame are taken by their names, in any order.

        Returns
        -------
        {ndarray, DataFrame} of shape (n_samples, n_features_out)
            With ``set_output(transform="pandas")``, codes of categories are columns of
            the category dtype.
        """
        return self._transform_codes(self.codes(X), X)

    def codes(self, X: Any) -> np.ndarray:
        """A number for every value: categories by codes, missing values NaN.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_codes)
            A column for each of ``columns_``. Codes of categories count the levels from
            zero; those of levels that ``fit`` has not seen are -1. Texts are components
            of their tf-idf, zeros where they miss. It is X itself if that is an array
            of floating point of which all columns are kept.
        """
        return self.codes_and_tf_idf(X)[0]

    def codes_and_tf_idf(self, X: Any) -> tuple[np.ndarray, Any]:
        """The codes, and the tf-idf of which components are among them.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_codes)
            As :meth:`codes` returns them.
        tf_idf : sparse matrix of shape (n_samples, n_terms) or None
            The terms of all columns of texts, one column after the other; None if there
            is no such column.
        """
        check_is_fitted(self)
        table = Table(X)
        indices = self._indices(table)
        columns = self._columns.items()
        is_numeric = all(column.kind in NUMERIC for _, column in columns)
        if table.numbers is not None and is_numeric:
            with names_infinite_columns(table.data):
                return self._kept_numbers(table.numbers, indices), None
        codes, tf_idf = [], []
        for index, (name, column) in zip(indices, columns):
            cells = table.cells(index)
            if column.kind == "text":
                tf_idf.append(tf_idf_of(column, cells, name))
                codes += column.components(tf_idf[-1])
            else:
                codes += column.encode(cells, name)
        with names_infinite_columns(table.data):
            codes = _join_columns(codes + _elapsed(codes, self._columns.values()))
        return codes, sparse.hstack(tf_idf, format="csr") if tf_idf else None

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features_in_,), default=None
            Names of the columns of X, if it had none in ``fit``.

        Returns
        -------
        ndarray of shape (n_features_out,) of str objects
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        names = [names[index] for index in self._kept]
        columns = _columns_of_codes(self._columns.values(), names)
        names = [column.name for column in columns]
        if self.transformer_ is not None:
            return self.transformer_.get_feature_names_out(names)
        return np.array(names, dtype=object)

    def one_hot(self, indices: Any = None) -> OneHotCodes:
        """A transformer of codes, not fitted, that makes one-hot columns of them.

        Parameters
        ----------
        indices : list of int, default=None
            The codes that the transformer is given; None: all.

        Returns
        -------
        transformer
        """
        check_is_fitted(self)
        if indices is None:
            return self._one_hot(self.columns_)
        return self._one_hot([self.columns_[index] for index in indices])

    def term_names(self, input_features: Any = None) -> list[str]:
        """Names of the columns of the tf-idf in :meth:`codes_and_tf_idf`.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features_in_,), default=None
            Names of the columns of X, if it had none in ``fit``.

        Returns
        -------
        list of str
            The name of a column of texts and the term.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return [
            f"{names[index]}: {term}"
            for index, column in zip(self._kept, self._columns.values())
            if column.kind == "text"
            for term in column.vectorizer.get_feature_names_out()
        ]

    def _one_hot(self, columns):
        limits = self.min_frequency, self.max_levels, self.drop
        # Whatever scikit-learn is configured to return, models take arrays.
        return OneHotCodes(columns, *limits).set_output(transform="default")

    def _fit_codes(self, X, sample_weight):
        """Fit, and return the codes of the rows of positive weight."""
        table, weights = Table(X), None
        if sample_weight is not None:
            rows, weights = rows_that_count(sample_weight, table.shape[0])
            if len(rows) < table.shape[0]:
                table = table.take_rows(rows)
        names = table.feature_names()
        labels = names or [f"x{index}" for index in range(table.shape[1])]
        kept, encoded, dropped = {}, [], {}
        for index, name in enumerate(labels):
            column, columns, reason = fit_column(table.cells(index), name, weights)
            if column is None:
                dropped[name] = reason
            else:
                kept[name] = index, column
                encoded += columns
        if not kept:
            examples = [f"{name}: {why}" for name, why in list(dropped.items())[:5]]
            raise ValueError(
                "No column of X can be used (all are constant or never repeat) with "
                f"n_samples={table.shape[0]} ({'; '.join(examples)})."
            )
        columns = {name: column for name, (_, column) in kept.items()}
        indices = [index for index, _ in kept.values()]
        with names_infinite_columns(table.data):
            if table.numbers is not None:
                codes = self._kept_numbers(table.numbers, indices)
            else:
                codes = _join_columns(encoded + _elapsed(encoded, columns.values()))
        encoded = _columns_of_codes(columns.values(), columns)
        transformer = None
        if self.categories == "onehot":
            transformer = self._one_hot(encoded).fit(codes, sample_weight=weights)
        self.n_samples_, self.n_features_in_ = table.shape
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            vars(self).pop("feature_names_in_", None)
        self.kinds_ = {name: column.kind for name, column in columns.items()}
        self.categories_ = {
            name: column.levels for name, column in columns.items() if column.levels
        }
        self.dropped_, self.columns_, self.transformer_ = dropped, encoded, transformer
        self._columns, self._kept, self._labels = columns, indices, table.names
        return codes

    def _indices(self, table):
        """Indices of the kept columns in a table; raises if columns are missing."""
        if table.names is not None and self._labels is not None:
            index_of = {name: index for index, name in enumerate(table.names)}
            kept = [self._labels[index] for index in self._kept]
            missing = [name for name in kept if name not in index_of]
            if not missing:
                return [index_of[name] for name in kept]
            if isinstance(missing[0], str):
                raise ValueError(f"Columns are missing in X: {missing}.")
        X = nw.to_native(table.data, pass_through=True)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._kept

    def _kept_numbers(self, array, indices):
        """The kept columns of an array of numbers, as floating point."""
        is_floating = array.dtype in (np.float32, np.float64)
        array = array if is_floating else array.astype(np.float64)
        if indices != list(range(array.shape[1])):
            array = array[:, indices]
        assert_all_finite(array, allow_nan=True, input_name="X")
        return array

    def _transform_codes(self, codes, X):
        """The output of ``transform`` for the codes of X."""
        if self.transformer_ is not None:
            return self.transformer_.transform(codes)
        if _get_output_config("transform", self)["dense"] != "pandas":
            return codes
        import pandas as pd

        columns = {
            column.name: values
            if column.levels is None
            else pd.Categorical.from_codes(
                np.where(values >= 0, values, -1).astype(np.intp), column.levels
            )
            for column, values in zip(self.columns_, codes.T)
        }
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(columns, index=index)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _columns_of_codes(fitted, names):
    """The CodedColumns of fitted columns with these names."""
    columns = [
        CodedColumn(
            f"{name}_{part}" if part else name,
            column.levels,
            column.has_missing,
            column.kind == "text",
        )
        for name, column in zip(names, fitted)
        for part in column.parts
    ]
    for first, second in _pairs_of_dates(fitted):
        name = f"{columns[second].name}_minus_{columns[first].name}"
        has_missing = columns[first].has_missing or columns[second].has_missing
        name = name.replace(f"_{SECONDS}", "")
        columns.append(CodedColumn(name, None, has_missing))
    names = make_distinct([column.name for column in columns])
    return [column._replace(name=name) for name, column in zip(names, columns)]


def _pairs_of_dates(fitted, n_dates=4):
    """Indices of the seconds among the codes, for every pair of date columns."""
    indices, n_before = [], 0
    for column in fitted:
        if column.kind == "date" and SECONDS in column.parts:
            indices.append(n_before + column.parts.index(SECONDS))
        n_before += len(column.parts)
    return list(combinations(indices[:n_dates], 2))


def _elapsed(codes, fitted):
    """Seconds from one date of a row to another, for every pair of date columns."""
    return [codes[second] - codes[first] for first, second in _pairs_of_dates(fitted)]


def _join_columns(columns):
    """Columns as one array, in single precision if all columns are."""
    are_single = all(column.dtype == np.float32 for column in columns)
    dtype = np.float32 if are_single else np.float64
    array = np.empty((len(columns[0]), len(columns)), dtype)
    for index, column in enumerate(columns):
        array[:, index] = column
    assert_all_finite(array, allow_nan=True, input_name="X")
    return array
