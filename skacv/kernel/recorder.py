"""What is kept of every epoch, and when there are enough of them."""

import numpy as np


class Recorder:
    """Paths of a run, epoch by epoch; entry 0 is the start at zero.

    Parameters
    ----------
    plan : Plan
    leave_one_out : LeaveOneOut or None
        None where the rows left out are replicas, or none are.
    patience : Patience
    store_every : int
    dtype : dtype
        What is kept row by row is of this type.
    """

    def __init__(self, plan, leave_one_out, patience, store_every, dtype):
        self.plan = plan
        self.patience, self.store_every = patience, store_every
        self.leave_one_out, self.dtype = leave_one_out, dtype
        self.train, self.squared_norm = [], []
        self.loo, self.loo_bias, self.loo_mc_se = [], [], []
        self.degrees_of_freedom = []
        self.replicas = [[] for _ in plan.replicas]
        self.dual_coef = {}
        self._start()

    @property
    def n_epochs(self):
        """Epochs recorded."""
        return len(self.train) - 1

    def _start(self):
        target = self.plan.target
        self._record(-target, np.zeros_like(target), -self.plan.columns())
        if self.leave_one_out is not None:
            self._record_left_out(-target[self.plan.left_out])
        self._judge()

    def advance(self, epoch):
        """Record an epoch; true if that is enough."""
        k = self.plan.n_outputs
        self._record(epoch.residual[:, :k], epoch.dual_coef, epoch.residual)
        if self.leave_one_out is not None:
            self._record_left_out(*self.leave_one_out.advance(epoch))
        return self._judge()

    def _record(self, residual, dual_coef, columns):
        self.train.append(float(np.mean(residual**2)))
        predictions = residual + self.plan.target
        self.squared_norm.append(float(np.sum(dual_coef * predictions)))
        for number, (_, judged) in enumerate(self.plan.replicas):
            found = columns[judged, self.plan.replica_columns(number)]
            self.replicas[number].append(found)
        self.dual_coef[self.n_epochs] = dual_coef.astype(self.dtype)

    def _record_left_out(self, held_out, bias=0.0, mc_se=0.0):
        self.loo.append(held_out.astype(self.dtype))
        self.loo_bias.append(bias)
        self.loo_mc_se.append(mc_se)
        degrees = self.leave_one_out.memory.degrees_of_freedom
        self.degrees_of_freedom.append(degrees)

    def _judge(self):
        """Whether the estimated risk has not fallen for long enough."""
        t, estimate = self.n_epochs, self._estimate()
        wanted = {t}
        if estimate is not None:
            # What the random labels leave open is no improvement.
            uncertainty = self.loo_mc_se[-1] if self.loo_mc_se else 0.0
            self.patience.update(estimate, uncertainty)
            wanted.add(self.patience.best)
        self.dual_coef = {
            s: dual_coef
            for s, dual_coef in self.dual_coef.items()
            if s % self.store_every == 0 or s in wanted
        }
        return self.patience.has_ended

    def _estimate(self):
        """The estimated risk of the last epoch, none without leave-one-out or folds."""
        if self.leave_one_out is not None:
            squares = np.mean(self.loo[-1] ** 2, dtype=np.float64)
            return float(squares) - self.loo_bias[-1]
        # Single rows are judged by where there are any, else folds.
        replicas = self.replicas[self.plan.n_folds :] or self.replicas
        if not replicas:
            return None
        costs = [np.mean(path[-1] ** 2, axis=1) for path in replicas]
        return float(np.concatenate(costs).mean())
