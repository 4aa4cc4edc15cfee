"""Is best_score_corrected_ the log loss of what was kept, for classes of few rows?"""

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss

from skacv import SelfStoppingClassifier, Staged, TrajectoryEarlyStoppingCV

from ..framework import header, line

N_NEW, N_COLUMNS, SHIFT = 4000, 6, 0.8
# Rows of each class, at least: without one of them the other one is left to a fold.
FEWEST_OF_CLASS = 2
N_ROWS, SHARES = (30, 60, 200), (0.5, 0.05)


def stopped(model):
    """An ensemble of classes that stops itself."""
    return TrajectoryEarlyStoppingCV(Staged(model), random_state=0)


# The default takes seconds for a fit: fewer samples.
MODELS = {
    "random forest": (
        lambda: stopped(RandomForestClassifier(40, min_samples_leaf=3, random_state=0)),
        200,
    ),
    "extra trees": (
        lambda: stopped(ExtraTreesClassifier(40, min_samples_leaf=3, random_state=0)),
        200,
    ),
    "boosted trees": (
        lambda: stopped(GradientBoostingClassifier(max_depth=2, random_state=0)),
        100,
    ),
    "default": (lambda: SelfStoppingClassifier(random_state=0), 20),
}


def sample(n_rows, share, rng):
    """Rows of two classes, whose means differ in two of the columns, and new ones.

    The classes have the same shares in both.
    """
    n_positive = max(FEWEST_OF_CLASS, round(share * n_rows))
    y = np.zeros(n_rows + N_NEW, dtype=int)
    y[:n_positive] = 1
    y[n_rows : n_rows + round(N_NEW * n_positive / n_rows)] = 1
    X = rng.standard_normal((len(y), N_COLUMNS))
    X[:, :2] += SHIFT * y[:, None]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def readings(make, n_rows, share, seed):
    """What is said of the choice on one sample, and its log loss on new rows.

    Returns
    -------
    score, corrected, loss : float
    """
    X, y, X_new, y_new = sample(n_rows, share, np.random.default_rng(seed))
    model = make().fit(X, y)
    loss = log_loss(y_new, model.predict_proba(X_new))
    return model.best_score_, model.best_score_corrected_, loss


def corrected_scores():
    """What the scores of ensembles of classes say of them, where rows are few.

    Two classes whose means differ in two of six Gaussian columns, balanced or with 5%
    of the rows positive, but two at least. Means of best_score_ and of
    best_score_corrected_ over the mean log loss on 4000 new rows: one is the truth.
    Forests of 40 trees with three rows to a leaf may be sure of the wrong class, which
    costs 36, so that few samples determine the means: standard errors are in brackets.
    """
    columns = "samples", "log loss", "score", "corrected"
    yield from header("model", "rows", "positive", *columns)
    for name, (make, n_samples) in MODELS.items():
        for n_rows in N_ROWS:
            for share in SHARES:
                results = [
                    readings(make, n_rows, share, seed) for seed in range(n_samples)
                ]
                score, corrected, loss = np.transpose(results)
                ratios = (ratio_with_error(said, loss) for said in (score, corrected))
                label = name, n_rows, f"{share:.0%}", n_samples
                yield line(*label, f"{loss.mean():.3f}", *ratios)
    yield ""


def ratio_with_error(said, loss):
    """The ratio of two means, and its standard error by the delta method."""
    ratio = said.mean() / loss.mean()
    error = np.std(said - ratio * loss, ddof=1) / np.sqrt(len(loss)) / loss.mean()
    return f"{ratio:.2f} ({error:.2f})"
