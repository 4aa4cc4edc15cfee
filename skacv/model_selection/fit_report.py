"""``verbose``: a line for every member as it is fitted, and one for the result."""

from .criteria import index_of_least
from .stages import EvaluatedFit
from .time_limit import too_short


class FitReport:
    """Prints what a fit has done so far, as scikit-learn does, to standard output.

    ``skipped`` has the reasons why members were left out before any run.
    ``score_at(candidate, run, t)`` is the name and the value of the score by which
    members are compared.
    """

    def __init__(self, owner, candidates, criterion, skipped, score_at):
        self.verbose, self.criterion = owner.verbose, criterion
        self._score_at = score_at
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
            self._runs[name].append((candidate, run))
            if self.verbose > 1 and candidate.params:
                best = self._best_of([(candidate, run)])
                self._print(name, f"{best} with {candidate.params}")
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
        name, value = compared.shown[compared.index][0], compared.score[0]
        if compared.between is not None:
            name, value = compared.between.name, compared.scores[compared.index]
        score = f"{name} {value:.6g}"
        self._print("kept", f"{text}: {score}, {seconds:.2f} s in all")

    def _best_of(self, runs):
        """The best iterate of several runs, its held-out score, and their time."""
        results = [run for _, run in runs if run is not None]
        runs = [pair for pair in runs if isinstance(pair[1], EvaluatedFit)]
        if not runs:
            return f"left out: {results[0].why if results else too_short(self._limit)}"
        losses, iterations = [], []
        for _, run in runs:
            kept = run.estimator.recorded_iterations()
            best = index_of_least(self.criterion.sign * run.path[kept])
            losses.append(self.criterion.sign * run.path[kept[best]])
            iterations.append(int(kept[best]))
        best = int(index_of_least(losses))
        (candidate, run), t = runs[best], iterations[best]
        name, score = self._score_at(candidate, run, t)
        seconds = sum(run_k.seconds for _, run_k in runs)
        cut = ", cut" if run.is_cut else ""
        return (
            f"best {t:5} of {run.estimator.n_iter_:5} iterations "
            f"{seconds:8.2f} s {score:#11.6g} {name}{cut}"
        )

    def _print(self, name, text):
        print(f"[{self._owner}] {name:{self._width}} {text}", flush=True)
