"""The record of a run: a value that a fitted model holds and never changes."""

from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Number
from typing import Any, Self

import numpy as np

from .held_out import HeldOut
from .offsets import RowOffsets


@dataclass(frozen=True, eq=False)
class Record:
    """Every iterate of a run, and its estimated losses on unseen rows.

    Parameters
    ----------
    iterates : CoefPath, ParamsPath, Stages or None
        The iterates that are kept; None if only the one in use is left.
    iteration : int
        The iterate in use.
    iterate : object
        What predicts: ``iterates.at(iteration)``.
    n_iter : int
        The number of the last iterate.
    loss : Loss
    classes : ndarray of shape (n_classes,), or None
    train_path, objective_path : ndarray of shape (n_iter + 1,)
        Loss of every iterate on the training rows, without and with the penalty.
    strengths : dict of str to ndarray of shape (n_iter + 1,)
        Values of the parameter that sets the strength of the penalty, by its name.
    estimates : dict of str to HeldOut
        By the name of the estimate, as far as they are switched on.
    phases : list of Phase
    seed : int
        Of batches, and of all else that is drawn for the run.
    step_size : float
    weights : ndarray of shape (n_samples,), or None
        Weights of the rows; None if nothing asks for them any more, or if rows stay
        where they are.
    groups : ndarray of int, shape (n_samples,), or None
    has_intercept : bool
    columns : AsPassed or Standardized
        From the columns of X to those of the run.
    data : TrainingData or None
        The data of the run, with ``keep_data=True`` and for kernels.
    more : dict of str to object
        Results of single classes of models, by the names of their attributes.
    in_use : dict of str to (int, HeldOutResiduals or HeldOutScores)
        By the name of the estimate, an iterate, and the held-out numbers of it that
        intervals or prediction sets need, where predictions of others are not kept.
    names : dict
        Fitted attributes about the columns of X, such as "feature_names_in_".
    column_names : ndarray of str, shape (n_features,), or None
        Names of the columns that an encoder has made of X.
    offset : RowOffsets or None
        Those of the rows, if fit was passed any: ``estimates`` are those of the run,
        on changed targets, and ``record[name]`` has the scale of y.
    devices : Devices or None
        Where X and y are, if they are arrays of another library; fitted attributes are
        read there.
    dropped : tuple of str, or None
        Names of the estimates that ``drop_record`` has left out, with all other paths;
        None if it has not been called.
    """

    iterates: Any
    iteration: int
    iterate: Any
    n_iter: int
    loss: Any = None
    classes: np.ndarray | None = None
    train_path: np.ndarray | None = None
    objective_path: np.ndarray | None = None
    strengths: dict[str, np.ndarray] = field(default_factory=dict)
    estimates: dict[str, HeldOut] = field(default_factory=dict)
    phases: Any = ()
    seed: int = 0
    step_size: float | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    has_intercept: bool = True
    columns: Any = None
    data: Any = None
    more: dict[str, Any] = field(default_factory=dict)
    in_use: dict[str, Any] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    column_names: np.ndarray | None = None
    offset: RowOffsets | None = None
    devices: Any = None
    dropped: tuple[str, ...] | None = None

    def __getstate__(self):
        # What most records lack takes no bytes.
        return {
            name: value
            for name, value in vars(self).items()
            if not (value is None or (isinstance(value, dict) and not value))
        }

    def __setstate__(self, state):
        for one in fields(self):
            default = None if one.default is MISSING else one.default
            if one.default_factory is not MISSING:
                default = one.default_factory()
            vars(self)[one.name] = state.get(one.name, default)

    def __getitem__(self, name: str) -> HeldOut:
        return self.on_scale_of_y(self.estimates[name])

    def on_scale_of_y(self, held_out: HeldOut) -> HeldOut:
        """An estimate of the run, with its held-out rows on the scale of y.

        Parameters
        ----------
        held_out : HeldOut

        Returns
        -------
        HeldOut
        """
        if self.offset is None:
            return held_out
        return self.offset.put_back(held_out, self.loss)

    def at(self, t: int) -> Self:
        """The same record with another iterate in use.

        Parameters
        ----------
        t : int
            An iterate that is kept.

        Returns
        -------
        Record
        """
        if self.iterates is None:  # there is no other
            return self
        return replace(self, iteration=t, iterate=self.iterates.at(t))

    def number(self, estimate: str, name: str) -> Any:
        """A single number of an estimate, which stays where paths are dropped.

        Parameters
        ----------
        estimate : str
        name : str

        Returns
        -------
        number
        """
        return self.more[name] if self.dropped else self.estimates[estimate].more[name]

    def with_estimates(self, estimates: dict[str, HeldOut]) -> Self:
        """The same record with others in the place of estimates of these names.

        Parameters
        ----------
        estimates : dict of str to HeldOut

        Returns
        -------
        Record
        """
        return replace(self, estimates={**self.estimates, **estimates})

    def without_path(self, in_use: dict[str, Any]) -> Self:
        """What predictions of the iterate in use need, and single numbers.

        Parameters
        ----------
        in_use : dict
            That of the new record: what intervals and sets need.

        Returns
        -------
        Record
        """
        results = dict(self.more)
        for held_out in self.estimates.values():
            results |= held_out.more
        numbers = {}
        for name, value in results.items():
            if isinstance(value, Number | str | None):
                numbers[name] = value
        return replace(
            self,
            iterates=None,
            train_path=None,
            objective_path=None,
            strengths={},
            estimates={},
            phases=(),
            weights=None,
            groups=None,
            columns=None,
            data=None,
            offset=self.offset and self.offset.without_rows(),
            more=numbers,
            in_use=in_use,
            dropped=self.dropped or tuple(self.estimates),
        )
