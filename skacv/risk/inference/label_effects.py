"""Effect of the label of a row on its loss derivatives, in the run without that row.

With U the held-out predictors of a row and W the memory matrix of the loss, the slopes
of the row follow from its label y alone,

    psi_s = -l'(y, U_s + sum_{r<s} W_sr psi_r),

which for the recorded label gives the recorded slopes. With the same U and the other
label it gives the slopes that the row would have had.
"""

from dataclasses import dataclass

import numpy as np

from ..memory.curved_run import CurvedRun
from ..memory.modes import AlongRun, modes_of
from .scores import shocks_of_scores, step_points


@dataclass(frozen=True)
class LabelEffects:
    """Held-out predictors U of a run of two labels, and slopes of rows by both."""

    run: CurvedRun
    signs: np.ndarray  # (n_rows, 1, n_probes)
    # U, where gradients are taken and at the last iterate, (n_updates + 1, n_rows).
    held_out: np.ndarray
    # The slope by the second label less that by the first, of the same shape.
    jumps: np.ndarray

    @classmethod
    def of(cls, problem, trajectory, method, rng=None, tol=1e-12):
        """The effects in a run of one output, by "exact" traces or random signs."""
        points, loss = step_points(problem, trajectory), problem.loss
        n_rows, n_updates = len(problem.target), points.n_updates
        run, basis = CurvedRun(points, np.ones(n_rows)), np.eye(n_updates)
        is_taken = points.rows_of_gradients()

        def slopes_by_both(rows):
            return -loss.derivative(np.array(loss.labels), points.points(rows))

        # Slopes by the other labels have modes of their own. Slopes that rows have in
        # their batches alone have as many as there are updates.
        if n_updates and method != "exact" and is_taken.all():
            shape = n_updates, n_rows, 2
            basis = modes_of(AlongRun(shape, slopes_by_both)).temporal
        signs = run.signs(method, rng)

        # W on these modes, from slopes at the gradients to gradients and the end.
        tangents = points.tangents(run.scales, basis, signs)
        response = np.concatenate([tangents.at_points[:, 0], tangents.solution[-1:, 0]])
        to_modes = np.linalg.pinv(basis)

        def memory(slopes):
            return response @ (to_modes @ (is_taken * slopes[:-1]))

        predictors = [*points.points(slice(None)), points.at(n_updates)]
        predictor = np.stack(predictors)[:, :, 0].astype(np.float64)
        held_out = predictor + memory(loss.derivative(problem.target[:, 0], predictor))

        # W is strictly lower triangular: every round fixes at least one more update.
        slopes_by_label = []
        for label in loss.labels:
            slopes = -loss.derivative(label, held_out)
            for _ in held_out:
                former = slopes
                slopes = -loss.derivative(label, held_out + memory(former))
                if np.abs(slopes - former).max() <= tol:
                    break
            slopes_by_label.append(slopes)
        first, second = slopes_by_label
        return cls(run, signs, held_out, second - first)

    def at_the_end(self, sums):
        """K^-1 of sums over rows, (n_updates + 1, n_sums), for the last iterate."""
        # The sums are those at all gradients and at the last iterate.
        points, last = self.run.points, len(sums) - 1
        left, size, right = np.linalg.svd(sums[:-1], full_matrices=False)
        kept = size > max(sums.shape) * np.finfo(float).eps * size[:1]
        tangents = points.tangents(
            self.run.scales, left[:, kept], self.signs, shocks_of=shocks_of_scores
        )
        response = tangents.solution[-1, 0] @ (size[kept, None] * right[kept])
        return sums[-1] / points.curvature(last).sum() + response
