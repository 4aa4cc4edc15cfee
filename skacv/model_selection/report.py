"""``verbose``: a line for every member as it is fitted, and one for the result."""

from .._estimator.estimates.fitted_state import loss_name
from .blending import LOG_LOSS
from .comparison import choose_iterates
from .criteria import PathCriterion, index_of_least
from .mixtures import LogLosses
from .time_limit import too_short


class FitReport:
    """Prints what a fit has done so far, as scikit-learn does, to standard output."""

    def __init__(self, owner, data, candidates, criteria=None):
        self.verbose, self.criteria = owner.verbose, criteria
        self._owner, self._limit = type(owner).__name__, owner.time_limit
        self._skipped = {member: why for member, _, why in data.left_out}
        listed = [one.member for one in candidates]
        self._width = max(map(len, ["kept", "race", *listed, *self._skipped]))
        # Candidates of every member that have not been run yet, and those that have.
        names = [one.member for one in candidates if not one.why_not]
        self._missing = {name: names.count(name) for name in names}
        self._ended = {name: [] for name in names}

    def print_left_out(self):
        """Report the members that do not run."""
        for name, why in self._skipped.items():
            self._print(name, f"left out: {why}")

    def add(self, candidates):
        """Report a group of candidates that has been run, or left out."""
        for candidate in candidates:
            name = candidate.member
            self._missing[name] -= 1
            self._ended[name].append(candidate)
            if self.verbose > 1 and candidate.params:
                best = self._best_of([candidate])
                self._print(name, f"{best} with {candidate.params}")
            if not self._missing[name]:
                self._print(name, self._best_of(self._ended[name]))

    def print_lap(self, number, n_folds, entrants):
        """Report a fold of a race, and take off the entrants that it has ended."""
        n_left = 0
        for entrant in entrants:
            n_left += not entrant.why_not
            for candidate in entrant.candidates if entrant.why_not else ():
                self._missing[candidate.member] -= 1
        text = f"fold {number} of {n_folds}: {n_left} of {len(entrants)} go on"
        self._print("race", text)

    def print_kept(self, compared, seconds):
        """Report the model that is kept, and the seconds of the fit."""
        kept = {name: part for name, part in compared.parts.items() if part.weight > 0}
        text = " + ".join(f"{part.weight:.2f} {name}" for name, part in kept.items())
        runs = {compared.chosen[part.index].run.member for part in kept.values()}
        if len(runs) == 1:
            (member,) = runs
            if len(kept) == 1:
                (part,) = kept.values()
                text = f"iteration {part.iteration}"
            text = f"{member} at {text}"
        name, value = compared.shown(compared.index)[0], compared.score[0]
        if compared.between is not None:
            name, value = compared.between.name, compared.chosen[compared.index].score
        score = f"{name} {value:.6g}"
        self._print("kept", f"{text}: {score}, {seconds:.2f} s in all")

    def _best_of(self, candidates):
        """The best iterate of several runs, its held-out score, and their time."""
        runs = [one.run for one in candidates if one.run is not None]
        if not runs:
            failed = [one for one in candidates if one.failed is not None]
            why = failed[0].why_not if failed else too_short(self._limit)
            return f"left out: {why}"
        losses, iterations, sign = [], [], self.criteria.of_iterates.sign
        for run in runs:
            kept = run.estimator.recorded_iterations()
            best = index_of_least(sign * run.path[kept])
            losses.append(sign * run.path[kept[best]])
            iterations.append(int(kept[best]))
        best = int(index_of_least(losses))
        run, t = runs[best], iterations[best]
        name, score = score_at(self.criteria, run, t)
        seconds = sum(one.seconds for one in runs)
        cut = ", cut" if run.is_cut else ""
        return (
            f"best {t:5} of {run.estimator.n_iter_:5} iterations "
            f"{seconds:8.2f} s {score:#11.6g} {name}{cut}"
        )

    def _print(self, name, text):
        print(f"[{self._owner}] {name:{self._width}} {text}", flush=True)


def score_at(criteria, run, t):
    """The score by which members are compared, of an iterate: name and value."""
    criterion = criteria.of_iterates
    if criteria.blend is not None and criteria.blend.mixture is LogLosses:
        chosen = choose_iterates([run], criterion, index_of_least)
        blended = criteria.blend.compare(chosen, criterion, index_of_least)
        return LOG_LOSS, blended.score[0]
    if criteria.of_members is not None:
        return criteria.of_members.name, criteria.of_members.path(run.estimator, [t])[0]
    if isinstance(criterion, PathCriterion):
        return loss_name(run.estimator), run.path[t]
    return criterion.name, run.path[t]
