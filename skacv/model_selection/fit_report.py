"""``verbose``: a line for every member as it is fitted, and one for the result."""

from .comparison import loss_name
from .criteria import PathCriterion, index_of_least
from .stages import EvaluatedFit
from .time_limit import too_short


class FitReport:
    """Prints what a fit has done so far, as scikit-learn does, to standard output.

    ``skipped`` has the reasons why members were left out before any run.
    """

    def __init__(self, owner, candidates, criterion, skipped):
        self.verbose, self.criterion = owner.verbose, criterion
        self._owner, self._limit = type(owner).__name__, owner.time_limit
        names = [candidate.member for candidate in candidates]
        self._width = max(map(len, ["kept", "race", *names, *skipped]))
        # Candidates of every member that have not been run yet, and runs of the rest.
        self._missing = {name: names.count(name) for name in names}
        self._runs = {name: [] for name in names}
        for name, why in skipped.items():
            self._print(name, f"left out: {why}")

    def add(self, candidates, runs):
        """Report a group of candidates that has been run.

        ``runs`` has None for candidates that there was no time for, and Failed for
        those that have raised an error.
        """
        for candidate, run in zip(candidates, runs):
            name = candidate.member
            self._missing[name] -= 1
            self._runs[name].append(run)
            if self.verbose > 1 and candidate.params:
                self._print(name, f"{self._best_of([run])} with {candidate.params}")
            if not self._missing[name]:
                self._print(name, self._best_of(self._runs[name]))

    def lap(self, number, n_folds, entrants):
        """Report a fold of a race, and take off the entrants that it has ended."""
        n_left = 0
        for entrant in entrants:
            n_left += not entrant.ended
            for candidate in entrant.candidates if entrant.ended else ():
                self._missing[candidate.member] -= 1
        text = f"fold {number} of {n_folds}: {n_left} of {len(entrants)} go on"
        self._print("race", text)

    def end(self, compared, seconds):
        """Report the model that is kept, and the seconds of the fit."""
        kept = [(name, w) for name, w in compared.weights.items() if w > 0]
        if len(kept) > 1:
            text = " + ".join(f"{weight:.2f} {name}" for name, weight in kept)
        else:
            iteration = compared.choices[compared.index].iteration
            text = f"{kept[0][0]} at iteration {iteration}"
        score_name, *_ = compared.shown[compared.index]
        score = f"{score_name} {compared.score[0]:.6g}"
        self._print("kept", f"{text}: {score}, {seconds:.2f} s in all")

    def _best_of(self, runs):
        """The best iterate of several runs, its held-out score, and their time."""
        results, runs = runs, [run for run in runs if isinstance(run, EvaluatedFit)]
        if not runs:
            failed = [result for result in results if result is not None]
            return f"left out: {failed[0].why if failed else too_short(self._limit)}"
        scores, iterations, sign = [], [], self.criterion.sign
        for run in runs:
            kept = run.estimator.recorded_iterations()
            best = index_of_least(sign * run.path[kept])
            scores.append(sign * run.path[kept[best]])
            iterations.append(int(kept[best]))
        best = int(index_of_least(scores))
        run, loss = runs[best], self.criterion.name
        if isinstance(self.criterion, PathCriterion):
            loss = loss_name(run.estimator)
        seconds = sum(run_k.seconds for run_k in runs)
        cut = ", cut" if run.is_cut else ""
        return (
            f"best {iterations[best]:5} of {run.estimator.n_iter_:5} iterations "
            f"{seconds:8.2f} s {sign * scores[best]:#11.6g} {loss}{cut}"
        )

    def _print(self, name, text):
        print(f"[{self._owner}] {name:{self._width}} {text}", flush=True)
