"""``verbose``: a line for every member as it is fitted, and one for what is kept."""

from .comparison import loss_name
from .criteria import PathCriterion, place_of_least
from .time_limit import too_short


class FitReport:
    """Prints what a fit has done so far, as scikit-learn does, to standard output.

    Parameters
    ----------
    owner : TrajectoryEarlyStoppingCV
    candidates : list of Candidate
    criterion : PathCriterion or ScorerCriterion
    left_out : dict of str to str
        Why members were left out before any run.
    """

    def __init__(self, owner, candidates, criterion, left_out):
        self.verbose, self.criterion = owner.verbose, criterion
        self._owner, self._limit = type(owner).__name__, owner.time_limit
        names = [each.member for each in candidates]
        self._width = max(map(len, ["kept", *names, *left_out]))
        # Candidates of every member that have not been run yet, and runs of the others.
        self._missing = {name: names.count(name) for name in names}
        self._runs = {name: [] for name in names}
        for name, why in left_out.items():
            self._print(name, f"left out: {why}")

    def take(self, candidates, runs):
        """Report a group of candidates that has been run.

        Parameters
        ----------
        candidates : list of Candidate
        runs : list of EvaluatedFit or None
            None of those that there was no time for.
        """
        for candidate, run in zip(candidates, runs):
            name = candidate.member
            self._missing[name] -= 1
            if run is not None:
                self._runs[name].append(run)
            if self.verbose > 1 and candidate.params:
                said = self._said([run] if run is not None else [])
                self._print(name, f"{said} with {candidate.params}")
            if not self._missing[name]:
                self._print(name, self._said(self._runs[name]))

    def end(self, compared, seconds):
        """Report what is kept.

        Parameters
        ----------
        compared : Comparison
        seconds : float
            Time of the whole fit.
        """
        kept = [(name, w) for name, w in compared.weights.items() if w > 0]
        if len(kept) > 1:
            said = " + ".join(f"{weight:.2f} {name}" for name, weight in kept)
        else:
            said = f"{kept[0][0]} at iteration {compared.best[2].iteration}"
        score = f"{compared.score_name} {compared.score[0]:.6g}"
        self._print("kept", f"{said}: {score}, {seconds:.2f} s in all")

    def _said(self, runs):
        """The best iterate of some runs, its held-out score, and their time."""
        if not runs:
            return f"left out: {too_short(self._limit)}"
        found, sign = [], self.criterion.sign
        for run in runs:
            rows = run.estimator.recorded_iterations()
            best = place_of_least(sign * run.path[rows])
            found.append((sign * run.path[rows[best]], int(rows[best]), run))
        score, t, run = found[int(place_of_least([each[0] for each in found]))]
        is_loss = isinstance(self.criterion, PathCriterion)
        loss = loss_name(run.estimator) if is_loss else self.criterion.name
        seconds = sum(each.seconds for each in runs)
        cut = ", cut" if run.is_cut else ""
        return (
            f"best {t:5} of {run.estimator.n_iter_:5} iterations {seconds:8.2f} s "
            f"{sign * score:#11.6g} {loss}{cut}"
        )

    def _print(self, name, said):
        if self.verbose:
            print(f"[{self._owner}] {name:{self._width}} {said}", flush=True)
