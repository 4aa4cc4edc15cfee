"""Adapter of the networks of skorch, whose stages are epochs."""

import numpy as np
from sklearn.base import is_classifier

from ..optim.losses import Huber, SquaredError
from .losses import AbsoluteError, judged_by
from .snapshots import SnapshotAdapter


class SkorchNets(SnapshotAdapter):
    """Networks of skorch: an epoch is a stage.

    Each copy draws weights, batches and dropout from the random state that torch has
    when the run begins, as a network that is fitted by itself. That state stays as it
    is.
    """

    count = "max_epochs"
    unit = "epochs"
    needs = "fit_loop"
    # No rows are set aside, and no copy prints its epochs.
    grows_with = {"verbose": 0, "train_split": None}
    # By the names of classes of torch.nn.
    regression = {
        "MSELoss": judged_by(SquaredError),
        "L1Loss": judged_by(AbsoluteError),
        "HuberLoss": judged_by(Huber, threshold=("criterion__delta", 1.0)),
    }
    random_state = None

    def begin(self):
        for item in self.estimator.callbacks or ():
            callback = item[1] if isinstance(item, tuple) else item
            if type(callback).__name__ == "EarlyStopping":
                raise ValueError(
                    f"{type(self.estimator).__name__} has the callback EarlyStopping, "
                    "which needs rows that are set aside: leave it out, since folds "
                    "choose the epoch."
                )
        return super().begin()

    def named_loss(self, losses):
        params = self.estimator.get_params(deep=False)
        criterion = getattr(params["criterion"], "__name__", None)
        return losses[criterion](params) if criterion in losses else None

    def unnamed_loss(self):
        if is_classifier(self.estimator) or self.named_loss(self.regression):
            return None
        return "criterion", self.estimator.criterion

    def grow(self, n_stages, X, y, params):
        import torch

        if not is_classifier(self.estimator):  # outputs are columns
            y = np.asarray(y, dtype=np.float32).reshape(len(y), -1)
        with torch.random.fork_rng():
            if self.random_state is not None:
                torch.set_rng_state(self.random_state)
            super().grow(n_stages, X, y, params)
            self.random_state = torch.get_rng_state()

    def fit_stage(self, X, y, params):
        # What partial_fit does; but this would begin schedules of the steps anew.
        if not self.copies:
            self.estimator.initialize()
            self.estimator.notify("on_train_begin", X=X, y=y)
        self.estimator.fit_loop(X, y, epochs=1, **params)

    def predictions(self, X, first, last, former_sums=None):
        import torch

        with torch.random.fork_rng():  # loaders draw numbers that nobody needs
            values, former_sums = super().predictions(X, first, last, former_sums)
        return np.stack([self.as_targets(each) for each in values]), former_sums

    def as_targets(self, predictions):
        is_column = predictions.ndim == 2 and predictions.shape[1] == 1
        return predictions[:, 0] if is_column else predictions
