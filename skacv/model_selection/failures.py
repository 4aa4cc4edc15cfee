"""What one candidate cannot do is no reason for the others to stop.

Every step that a candidate takes by itself goes through :func:`attempt`. A candidate
that raises has no score, as with ``error_score=np.nan`` in scikit-learn's searches: the
others are compared, ``results_`` has its error, and one warning names all that failed.
If all fail, the error of the first is raised.
"""

import pickle
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.exceptions import FitFailedWarning

from .._warnings import warn

# Names in a warning.
MOST_NAMED = 5


@dataclass(frozen=True)
class Failed:
    """In the place of a result: the error that a step has raised."""

    error: Exception
    # Time until then.
    seconds: float

    @property
    def why(self):
        """The error in a line."""
        return f"{type(self.error).__name__}: {self.error}"

    def __reduce__(self):
        # An error that cannot be pickled would end the processes of all candidates.
        error = self.error
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(self.why)
        return Failed, (error, self.seconds)


def attempt(step, *args):
    """The result of a step of one candidate, or its error as Failed."""
    begun = perf_counter()
    try:
        return step(*args)
    except Exception as error:
        return Failed(error, perf_counter() - begun)


def score_or_nan(result):
    """The result of a scorer, NaN where it has failed."""
    return np.nan if isinstance(result, Failed) else result


def name_of(member, params):
    """A member, and its combination of parameters if there is one, for messages."""
    return f"{member!r} with {params}" if params else f"{member!r}"


def raise_first(failed):
    """Raise the error of the first of all candidates, each of which has failed."""
    error = failed[0].failed.error
    if len(failed) > 1:
        error.add_note(
            f"This is the error of {failed[0].name}. All {len(failed)} candidates "
            "failed."
        )
    raise error


def warn_of_failures(candidates):
    """Warn of candidates that have failed, in the words of scikit-learn."""
    failed = [candidate for candidate in candidates if candidate.failed is not None]
    if not failed:
        return
    lines = [f"{one.name}: {one.why_not}" for one in failed[:MOST_NAMED]]
    if len(failed) > MOST_NAMED:
        lines.append(f"and {len(failed) - MOST_NAMED} more")
    fits = "fit" if len(failed) == 1 else "fits"
    warn(
        f"{len(failed)} {fits} failed out of a total of {len(candidates)}. The score "
        "is nan for these parameters.\n" + "\n".join(lines),
        FitFailedWarning,
    )
