"""
A booster that stops itself
===========================

The number of boosted trees must be chosen: too few learn too little, too many learn the
noise. ``TrajectoryEarlyStoppingCV`` chooses it from the training rows and sets none of
them aside. This tutorial stops scikit-learn's ``HistGradientBoostingRegressor``,
compares it with the usual ways to set the number, and lets it choose the learning rate
and the size of the trees as well.

A row is ten measurements of a diabetes patient, and the target is how far the disease
has progressed a year later. A quarter of the patients are test rows, which only check
results.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV

plt.rcParams["font.size"] = 11

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
print(f"{len(X)} patients: {len(X_train)} training rows, {len(X_test)} test rows")

# %%
# Fit once
# --------
#
# ``max_iter`` is only a limit here, so it is set high. All other parameters keep their
# defaults. A model of LightGBM, XGBoost or CatBoost goes in the same place:
# ``LGBMRegressor(n_estimators=2000)``, ``XGBRegressor(n_estimators=2000)`` or
# ``CatBoostRegressor(iterations=2000)``.

trees = HistGradientBoostingRegressor(max_iter=2000, random_state=0)
model = TrajectoryEarlyStoppingCV(trees, random_state=0).fit(X_train, y_train)

n_grown = model.estimator_.n_iter_
test_error = mean_squared_error(y_test, model.predict(X_test))
print(f"trees kept:                    {model.best_params_['max_iter']}")
print(f"trees grown by the copies:     {n_grown}")
print(f"squared error, held-out rows:  {model.best_score_:.0f}")
print(f"squared error, test rows:      {test_error:.0f}")

# %%
# The model on all training rows and five copies of it, each trained without one fold,
# add trees side by side. Each copy predicts the fold that it has not seen. The run ends
# when further trees would lower the mean error of these predictions by less than a
# tenth of its standard error, judged by what the last trees have gained, and at the
# latest when fifty trees in a row have not lowered it. The model keeps the number of
# trees where this error was smallest. It is then ready: nothing is refitted.
#
# The path of the held-out error
# ------------------------------
#
# ``model.path_`` is the held-out error of every number of trees, and
# ``RiskPathDisplay`` draws it. The black line, for comparison, is the error on the test
# rows of a plain model with as many trees.

plain = clone(trees).set_params(max_iter=n_grown).fit(X_train, y_train)
test_path = [
    mean_squared_error(y_test, predicted) for predicted in plain.staged_predict(X_test)
]

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
display = RiskPathDisplay.from_estimator(model, ax=ax)
(line,) = ax.plot(np.arange(1, n_grown + 1), test_path, color="black")
ax.set_xlabel(f"number of trees ({model.best_iter_} in use)")
ax.set_title("Held-out, test and training error", loc="left")
ax.legend([line], ["test error"], frameon=False, loc="upper right")
plt.show()

# %%
# The held-out error is smallest at the dashed line, and rises a little after it. The
# error on test rows falls and rises too; on these rows fewer trees would have been a
# little better still. The training error only falls: it does not say when to stop.
#
# Compared with the usual ways
# ----------------------------
#
# The usual early stopping, ``early_stopping=True``, sets a part of the training rows
# aside, here a fifth, and stops when the error on them no longer falls. The model never
# learns from these rows. Or the number of trees is fixed, by default at 100. The test
# rows are few, so all models are fitted on six splits.

splits = [train_test_split(X, y, random_state=seed) for seed in range(6)]
by_itself, by_a_fifth = "stops itself", "a held-out fifth"
candidates = {
    by_itself: TrajectoryEarlyStoppingCV(trees, random_state=0),
    by_a_fifth: clone(trees).set_params(early_stopping=True, validation_fraction=0.2),
    "30 trees": clone(trees).set_params(max_iter=30),
    "100 trees": clone(trees).set_params(max_iter=100),
    "300 trees": clone(trees).set_params(max_iter=300),
}
n_trees = {name: [] for name in candidates}
errors = {name: [] for name in candidates}
scores, corrected, standard_errors = [], [], []
for X_fit, X_new, y_fit, y_new in splits:
    for name, candidate in candidates.items():
        candidate.fit(X_fit, y_fit)
        errors[name].append(mean_squared_error(y_new, candidate.predict(X_new)))
        stopped = name == by_itself
        n_trees[name].append(candidate.best_iter_ if stopped else candidate.n_iter_)
    scores.append(candidates[by_itself].best_score_)
    corrected.append(candidates[by_itself].best_score_corrected_)
    standard_errors.append(candidates[by_itself].best_score_corrected_se_)

print(f"{'':18}{'trees':>10}{'mean test error':>18}")
for name in candidates:
    fewest, most = min(n_trees[name]), max(n_trees[name])
    number = f"{fewest} to {most}" if most > fewest else f"{most}"
    print(f"{name:18}{number:>10}{np.mean(errors[name]):18.0f}")

# %%
# The model that stops itself has a smaller mean error than the one that sets a fifth of
# the rows aside, and its number of trees varies less from split to split. The thirty
# trees are about as good, but nobody knows this number beforehand: the default of 100
# trees has a larger error, and 300 trees a still larger one.
#
# In the figure a dot is a split, and a black bar the mean. All errors are divided by
# the error of the model that stops itself on the same split.

others = [name for name in candidates if name != by_itself]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for row, name in enumerate(others):
    ratios = np.array(errors[name]) / errors[by_itself]
    ax.plot(ratios, np.full(len(ratios), row), "o", color="#56B4E9", alpha=0.7)
    ax.plot(ratios.mean(), row, "|", color="black", markersize=18, markeredgewidth=2)
ax.axvline(1, color="#666666", linestyle="--", zorder=1)
ax.set_yticks(range(len(others)), others)
ax.set_ylim(len(others) - 0.5, -0.5)
ax.set_xlabel("test error / test error of the model that stops itself")
ax.set_title("Right of the line, stopping by itself is better", loc="left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# On single splits early stopping on a held-out fifth is sometimes the better one. A
# hundred trees are worse on every split.
#
# Which error to expect
# ---------------------
#
# ``best_score_`` is the smallest of many estimates, so on average it is too low.
# ``best_score_corrected_`` corrects this on parts of the held-out rows, without a fit.

print("means over the splits")
print(f"best_score_              {np.mean(scores):6.0f}")
print(f"best_score_corrected_    {np.mean(corrected):6.0f}")
print(f"error on test rows       {np.mean(errors[by_itself]):6.0f}")
print(f"standard error, a split  {np.mean(standard_errors):6.0f}")

# %%
# The corrected score is larger than ``best_score_``, and nearer to the error on test
# rows. The rest of the difference is smaller than ``best_score_corrected_se_``, the
# standard error on one split.
#
# A race of learning rates and sizes
# ----------------------------------
#
# ``param_grid`` compares settings on the same folds, each with its own number of trees.
# With ``search="race"`` all settings first grow on one fold alone, then on the next.
# Those that are significantly worse than the best end there; the others continue.

grid = {"learning_rate": [0.05, 0.2, 1.0], "max_leaf_nodes": [4, 16]}
race = TrajectoryEarlyStoppingCV(
    trees, param_grid=grid, search="race", random_state=0
).fit(X_train, y_train)

results = race.results_
print("rate  leaves  trees  score")
for params, score, left_out in zip(
    results["params"], results["best_score"], results["left_out"]
):
    setting = f"{params['learning_rate']:<6}{params['max_leaf_nodes']:6}"
    if left_out:
        print(f"{setting}  ended {' '.join(left_out.split()[:3])}")
    else:
        print(f"{setting}{params['max_iter']:7}{score:7.0f}")
race_error = mean_squared_error(y_test, race.predict(X_test))
print(f"kept: {race.best_params_}")
print(f"corrected score {race.best_score_corrected_:.0f}, test error {race_error:.0f}")

# %%
# Both settings with the largest learning rate end before all folds are grown.
# ``results_["left_out"]`` says how much worse they are. The smallest rate wins, with
# the most trees, and on the test rows of this split its error is smaller than that of
# the defaults at the beginning. Only two of six settings end early, so this race saves
# little: the more rows a fold holds out, the more of them end.
