"""Data and batches of the tests of trainers."""

import numpy as np
import torch
from sklearn.model_selection import KFold

N_ROWS, N_EPOCHS, BATCH_SIZE = 40, 4, 8
FOLDS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(N_ROWS)))


class FixedBatches:
    """Other batches in every epoch, the same in every run; with some rows alone."""

    batch_size = BATCH_SIZE

    def __init__(self, kept=None):
        self.kept, self.epoch = kept, 0

    def __len__(self):
        return N_ROWS // BATCH_SIZE

    def __iter__(self):
        rows = np.random.default_rng(self.epoch).permutation(N_ROWS)
        self.epoch += 1
        for batch in rows.reshape(-1, BATCH_SIZE):
            if self.kept is not None:
                batch = batch[np.isin(batch, self.kept)]
            yield batch.tolist()


def fold_means(losses):
    """The mean over all rows of losses (n_folds, n_evaluations), and its error."""
    sizes = np.array([len(held_out) for _, held_out in FOLDS])
    shares = sizes / sizes.sum()
    mean = shares @ losses
    variance = (shares**2) @ (losses - mean) ** 2
    return mean, np.sqrt(variance * len(FOLDS) / (len(FOLDS) - 1))


def state_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def assert_same_state(state, other, **tolerances):
    assert state.keys() == other.keys()
    for name, value in state.items():
        torch.testing.assert_close(value, other[name], **tolerances)
