"""How many rows may a leaf of the default's extra trees hold, for probabilities?"""

from time import process_time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skacv import TrajectoryEarlyStoppingCV
from skacv._estimator.estimates.held_out_predictor import HeldOutPredictor
from skacv.model_selection.defaults.portfolio import TableInfo, classification
from skacv.model_selection.mixtures import likeliest_weights

from ..framework import header, line

# Parameters by the name of a variant: the least rows of a leaf, and whether every tree
# has a bootstrap sample of the rows.
FORMS = {
    f"{leaf}{', bootstrap' * bootstrap}": {
        "min_samples_leaf": leaf,
        "bootstrap": bootstrap,
    }
    for bootstrap in (False, True)
    for leaf in (1, 2, 3, 5)
}
EXTRA = "extra trees"
X_DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
TABLES = {
    "diabetes": (X_DIABETES, PROGRESSION > np.median(PROGRESSION)),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "noisy labels": make_classification(
        900, 20, n_informative=6, flip_y=0.3, random_state=0
    ),
    "rare class": make_classification(
        1500, 15, n_informative=5, weights=[0.95], flip_y=0.02, random_state=1
    ),
    "four classes": make_classification(
        1000, 12, n_informative=6, n_classes=4, flip_y=0.05, random_state=2
    ),
    "moons": make_moons(800, noise=0.35, random_state=0),
}
MOST_TRAINING_ROWS = 600
# Beside other members boosted trees end where they cannot improve the blend.
MOST_STAGES = 200


def leaves_of_extra_trees(n_splits=3):
    """How many rows a leaf of the default's extra trees holds, for probabilities.

    For every least number of rows in a leaf, with the rows as they are or a bootstrap
    sample for each tree, the log loss of unseen rows by the extra trees alone and by
    the blend of all default models for classes; "none" is the blend without extra
    trees. Half of the rows train, at most 600; means over 3 splits. "Seconds" are those
    of a processor for the extra trees and their folds. Last are the geometric means
    over the first form, with standard errors.
    """
    yield from header("data", "of", *FORMS, "none")
    ratios = {"alone": [], "blend": []}
    for table, (X, y) in TABLES.items():
        results = [_on_split(X, y, seed) for seed in range(n_splits)]
        for of in ("alone", "blend", "seconds"):
            values = np.array([result[of] for result in results])
            yield line(table, of, *(f"{value:.4f}" for value in values.mean(axis=0)))
            if of in ratios:
                ratios[of].append(np.log(values / values[:, :1]))
    for of, logs in ratios.items():
        logs = np.concatenate(logs)
        mean, error = logs.mean(axis=0), logs.std(axis=0) / np.sqrt(len(logs))
        cells = (f"{np.exp(m):.4f} ({e:.4f})" for m, e in zip(mean, error))
        yield line("all, over the first", of, *cells)


def _on_split(X, y, seed):
    """Log losses of the variants alone and of the blends, and seconds, on one split."""
    n_rows = min(len(y) // 2, MOST_TRAINING_ROWS)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_rows, stratify=y, random_state=seed
    )
    info = TableInfo(*X.shape, 1, n_classes=len(np.unique(y)))
    members = {m.name: m.estimator for m in classification(info)}
    extra = members.pop(EXTRA)
    others = list(members)
    members["boosted trees"].set_params(estimator__max_iter=MOST_STAGES)
    for name, form in FORMS.items():
        params = {f"estimator__{parameter}": form[parameter] for parameter in form}
        members[name] = clone(extra).set_params(**params)
    model = TrajectoryEarlyStoppingCV(
        list(members.items()), rule="blend", random_state=0
    )
    fitted = model.fit(X, y).members_
    held_out, unseen, labels = {}, {}, np.searchsorted(np.unique(y), y_test)
    for name, member in fitted.items():
        rows, t = np.hstack(member.cv_indices_), member.iteration_
        of_rows = HeldOutPredictor.from_model(member, member.cv_prediction_path_[t], t)
        shares = of_rows.predict_proba(None)
        of_label = shares[np.arange(len(rows)), np.searchsorted(np.unique(y), y[rows])]
        held_out[name] = of_label[np.argsort(rows, kind="stable")]
        unseen[name] = member.predict_proba(X_test)
    alone = [log_loss(labels, unseen[name]) for name in FORMS]
    blended, seconds = [], []
    for added in (*([name] for name in FORMS), []):
        names = [*others, *added]
        shares = np.stack([held_out[name] for name in names], axis=1)
        weights = likeliest_weights(shares, np.ones(len(shares)))
        mixed = sum(w * unseen[name] for w, name in zip(weights, names))
        blended.append(log_loss(labels, mixed))
    for name in FORMS:
        begun = process_time()
        TrajectoryEarlyStoppingCV(members[name], random_state=0).fit(X, y)
        seconds.append(process_time() - begun)
    return {"alone": alone, "blend": blended, "seconds": seconds}
