"""Training rows that are arrays in memory."""

from dataclasses import dataclass

from ..data.row_summary import RowSummary
from ..data.training_data import EncodedTarget, Samples, are_equal
from ..estimates.folds import asked_folds
from ..estimates.left_out import check_loo
from .fit_run import RowsToFit


@dataclass(frozen=True, eq=False)
class ArrayRows(RowsToFit):
    """Validated arrays, for a fit.

    Parameters
    ----------
    passed : tuple
        X, y and sample_weight as passed to fit.
    """

    passed: tuple
    samples: Samples
    encoded: EncodedTarget

    @classmethod
    def of(cls, estimator, X, y, sample_weight):
        """Those that an estimator is to be fitted to, validated.

        Raises
        ------
        ValueError
            If they are not what the estimator takes.
        """
        if isinstance(X, RowSummary):
            raise ValueError(
                "A RowSummary can be used with the squared error only, and "
                f"{type(estimator).__name__} needs the rows: fit it to arrays."
            )
        passed = X, y, sample_weight
        return cls(passed, *estimator._encoded_samples(*passed))

    @property
    def loss(self):
        return self.encoded.loss

    def were_passed(self, passed):
        """Whether they are those of the very same X, y and sample_weight."""
        return all(own is other for own, other in zip(self.passed, passed))

    def is_same_as(self, other):
        """Whether another fit is to the same rows."""
        if not isinstance(other, ArrayRows):
            return False
        return all(map(are_equal, self._arrays(), other._arrays()))

    def _arrays(self):
        """What the same rows have in common."""
        samples = self.samples
        return samples.rows, samples.y, self.encoded.weights, samples.passed

    def problem(self, estimator, params, seed, resume):
        """The problem that they make, the folds of ``cv`` as rows of it, and groups.

        Parameters
        ----------
        params : dict
            For the splitter, such as ``groups``.
        resume : bool
            Whether to go on with what the estimator has recorded, if anything.

        Returns
        -------
        TrainingData
        list of (ndarray of int, ndarray of int)
        ndarray of int, shape (n_samples,), or None
            The group of every sample, if the splitter is passed groups.
        """
        check_loo(estimator.loo, len(self.samples.rows))
        X, y, _ = self.passed
        folds, groups = asked_folds(estimator, X, y, self.samples, params)
        data = estimator._data_of(self.samples, self.encoded, folds, seed, resume)
        return *data, groups
