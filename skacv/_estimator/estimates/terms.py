"""What a stopping estimator asks of the runs of an estimator, before and after them."""

from typing import Any, NamedTuple


class Limit(NamedTuple):
    """A parameter that has ended a run, though updates might have gone on."""

    parameter: str
    advice: str
    unit: str = "updates"
    n_last: int = 0


class Price(NamedTuple):
    """Seconds that a run with five folds is expected to take, on one core."""

    start: float
    update: float
    n_updates: int

    @property
    def first(self):
        """Seconds until the first update has been evaluated."""
        return self.start + self.update

    @property
    def total(self):
        """Seconds of the whole run."""
        return self.start + self.n_updates * self.update


# Seconds to read, check and scale an entry of X.
SECONDS_TO_READ = 1e-7


class RunTerms:
    """The terms of the runs of an estimator: their price, patience, loss and limits.

    Here are those of estimators of other packages. X, y and sample_weight are those
    that are passed to ``begin``.

    Parameters
    ----------
    model : estimator
        It need not be fitted.
    """

    # Whether the gains of further iterates are foretold by those of the last ones, as
    # where stages are added, but not along a path of penalties.
    has_steady_gains = False
    # The smallest factor by which a run grows before its estimates are read again,
    # where these do not ask for less: the dearer an update is beside them, the smaller.
    growth = 2.0

    def __init__(self, model: Any) -> None:
        self.model = model

    # ------------------------------------------------------------------ before a run

    def price(self, n_rows: int, n_columns: int, n_outputs: int) -> Price:
        """The expected Price of a run on data of a shape."""
        seconds = SECONDS_TO_READ * n_rows * n_columns
        max_iter = getattr(self.model, "max_iter", 100)
        return Price(seconds, seconds * n_outputs, max_iter)

    def patience(self, record: Any = None) -> int | None:
        """Iterates without an improvement after which ``patience="auto"`` stops.

        ``record`` is that of the run so far, if there is one.
        """
        return None

    def loss(self, X: Any, y: Any) -> Any:
        """The loss of rows, to be compared with that of other estimators."""
        return self.model.path_loss

    def check_loss_chooses(self) -> None:
        """Raise if paths have another loss than the fit: a scorer must choose then."""
        return

    def check_data(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Raise the error that ``fit`` would raise on invalid data."""
        return

    def leaves_one_out_cheaply(self, X: Any, y: Any) -> bool:
        """Whether leave-one-out of every row takes about as long as a few folds."""
        return False

    def values_to_compare(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> list[dict[str, Any]]:
        """Values of automatic parameters to compare on held-out rows."""
        return [{}]

    @staticmethod
    def share_work(
        models: list[Any], X: Any, y: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Further arguments of ``begin`` that runs on the same data share."""
        return {}

    # ------------------------------------------------------------------- after a run

    def parameters_at(self, record: Any, t: int) -> dict[str, Any]:
        """Values at an iterate of parameters that change along the run."""
        return {}

    def limit(self, record: Any) -> Limit | None:
        """The parameter that has ended the run, for a warning that it is too small."""
        if not hasattr(self.model, "max_iter"):
            return None
        return Limit("max_iter", f"max_iter={self.model.max_iter} may be too small")


def terms_of(model):
    """The RunTerms of an estimator that records its trajectory."""
    return model._terms_type(model)
