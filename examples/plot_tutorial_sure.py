"""
How sure am I?
==============

A fitted model raises four questions. What error will it have on new rows? How far off
may a single prediction be? Is the best member of a table really better than the next
one? Could a later iterate be better? This tutorial answers all four from one fit,
without a validation set, and then checks the answers on rows that were kept aside.

A row is ten measurements of a diabetes patient, and the target is how far the disease
has progressed a year later. The members are the lasso, ridge regression and a kernel
machine.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RiskPathDisplay,
    SelfStoppingRegressor,
    TrajectoryLasso,
)

plt.rcParams["font.size"] = 11

X, y = load_diabetes(return_X_y=True)
members = [
    ("lasso", TrajectoryLasso("path", max_iter=20, standardize=True)),
    ("ridge", IterativeRidge(0.0, standardize=True)),
    ("kernel", KernelEigenProRegressor(standardize=True)),
]

# %%
# What error will it have on new rows?
# ------------------------------------
#
# Each member runs once, next to copies without one of five folds, and keeps the iterate
# with the smallest error on the rows that the copies have not seen. The model is a
# blend: a weighted mean of the members' predictions. Its weights have the smallest
# error on these rows, as a mean over random draws of them.
#
# ``best_score_`` is the error of the blend on these rows. They have chosen its iterates
# and weights, so on average it is too low. ``best_score_corrected_`` corrects that: the
# choice is repeated on four fifths of the held-out rows, and evaluated on the other
# fifth, for many random partitions. Nothing is refitted.
#
# Only 150 rows are for training, so there is much to be unsure of. All others are test
# rows, so the check is precise.


def split_and_fit(seed):
    """A blend fitted to 150 rows drawn at random; the other rows."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=150, random_state=seed
    )
    blend = SelfStoppingRegressor(members, rule="blend", random_state=0)
    return blend.fit(X_train, y_train), X_test, y_test


model, X_test, y_test = split_and_fit(seed=0)
score, score_se = model.best_score_, model.best_score_se_
corrected, corrected_se = model.best_score_corrected_, model.best_score_corrected_se_
test_error = mean_squared_error(y_test, model.predict(X_test))
print(f"{len(X) - len(X_test)} training rows, {len(X_test)} test rows")
print(f"best_score_            {score:.0f} ± {score_se:.0f}")
print(f"best_score_corrected_  {corrected:.0f} ± {corrected_se:.0f}")
print(f"error on test rows     {test_error:.0f}")

# %%
# The numbers after ± are standard errors. They are larger than the differences between
# the two scores and the test error, so one split does not show whether an estimate is
# too low. The mean over twenty splits does. The loop also computes what the next
# sections need.

levels = [0.5, 0.8, 0.9, 0.95]
scores, corrected_scores, test_errors, coverages = [], [], [], []
first_errors, first_is_best, gains, bounds = [], [], [], []
for seed in range(20):
    fitted, X_new, y_new = split_and_fit(seed)
    scores.append(fitted.best_score_)
    corrected_scores.append(fitted.best_score_corrected_)
    test_errors.append(mean_squared_error(y_new, fitted.predict(X_new)))

    lower, upper = np.moveaxis(fitted.predict_interval(X_new, coverage=levels), 1, 0)
    is_covered = (lower <= y_new[:, None]) & (y_new[:, None] <= upper)
    coverages.append(is_covered.mean(axis=0))

    errors = {
        name: mean_squared_error(y_new, member.predict(X_new))
        for name, member in fitted.members_.items()
    }
    first = next(name for name in fitted.leaderboard()["member"] if name != "blend")
    first_errors.append(errors[first])
    first_is_best.append(errors[first] == min(errors.values()))

    largest = fitted.members_[fitted.best_member_]
    test_path = largest.staged_loss(X_new, y_new)[fitted.best_iter_ :]
    gains.append(test_path[0] - test_path.min())
    bounds.append(fitted.possible_gain_)

print("means over 20 splits")
print(f"best_score_            {np.mean(scores):.0f}")
print(f"best_score_corrected_  {np.mean(corrected_scores):.0f}")
print(f"error on test rows     {np.mean(test_errors):.0f}")

# %%
# On average ``best_score_`` is below the error on test rows, and
# ``best_score_corrected_`` is close to it.
#
# How far off may a single prediction be?
# ---------------------------------------
#
# ``predict_interval`` returns a lower and an upper bound for every row, computed from
# the errors on held-out rows. With ``coverage=0.9`` nine of ten targets should lie
# between them.

interval = model.predict_interval(X_test, coverage=0.9)
is_inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
print(f"one split: {is_inside.mean():.2f} of the test targets are in 0.90 intervals")
print("\nnominal     covered, mean over 20 splits")
for level, share in zip(levels, np.mean(coverages, axis=0)):
    print(f"{level:9.2f}   {share:.2f}")

shown = np.argsort(model.predict(X_test))[::5]  # every fifth row, by its prediction
place = np.arange(len(shown))
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.vlines(place, *interval[shown].T, color="#56B4E9", label="90% interval")
for inside, color, label in (
    (True, "#0072B2", "target inside"),
    (False, "#D55E00", "target outside"),
):
    rows = is_inside[shown] == inside
    ax.plot(place[rows], y_test[shown][rows], "o", color=color, label=label)
ax.set_xlabel("test rows, by their prediction")
ax.set_ylabel("progress of diabetes")
ax.set_title("Intervals of test rows, and observed targets", loc="left")
ax.set_ylim(top=460)
ax.legend(frameon=False, fontsize=10, loc="upper left", ncols=3)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# On average the intervals cover about the nominal share of the targets. They are wider
# for larger predictions, whose held-out errors are larger.
#
# Is the best member really better?
# ---------------------------------
#
# ``leaderboard()`` shows the error of each member and of their blend on the same
# held-out rows, with its standard error.

board = model.leaderboard()
print(board[["member", "weight", "score", "score_se"]].round(2).to_string(index=False))

# %%
# All scores are within one standard error of each other. But a row that is hard to
# predict for one member is usually hard for all, so their difference is known better
# than the scores. ``cv_results_`` contains the score of every fold. The differences
# between two members on the same folds give a mean difference and its standard error.

results = model.cv_results_
folds = np.array([-results[f"split{k}_test_score"] for k in range(5)])
best_of = {}  # the kernel machine has a row for each of several widths
for row in np.argsort(-results["mean_test_score"]):
    best_of.setdefault(results["member"][row], row)
first, *others = best_of
differences = {}
for name in others:
    by_fold = folds[:, best_of[name]] - folds[:, best_of[first]]
    differences[name] = by_fold.mean(), by_fold.std(ddof=1) / np.sqrt(len(by_fold))
    mean, error = differences[name]
    print(f"{name} - {first}: {mean:.0f} ± {error:.0f}")

print(f"\nfirst is best on test rows in {sum(first_is_best)} of 20 splits")
print(f"mean test error of the first member  {np.mean(first_errors):.0f}")
print(f"mean test error of the blend         {np.mean(test_errors):.0f}")

# %%
# The standard error of a difference is much smaller than that of a score. But both
# differences are smaller than their standard errors: these rows do not say which member
# is best. In most of the twenty splits the first member of the leaderboard is also the
# best one on test rows, but not in all. A blend need not choose, and its mean error is
# smaller than that of the first member.
#
# Could a later iterate be better?
# --------------------------------
#
# ``possible_gain_`` is a bound. With 95% confidence, no later iterate of the run has an
# expected error that is smaller by more than this than that of the iterate in use. For
# a blend the run is that of the member with the largest weight.

name, best = model.best_member_, model.best_iter_
print(f"{name}, iterate {best} of {len(model.path_) - 1}")
print(f"held-out error: {model.path_[best]:.0f}")
print(f"possible_gain_, with 95% confidence: {model.possible_gain_:.0f}")
n_held = np.sum(np.array(gains) <= bounds)
print(f"\nlargest gain on test rows in 20 splits: {max(gains):.0f}")
print(f"gain on test rows within the bound: {n_held} of 20 splits")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
display = RiskPathDisplay.from_estimator(model.members_[name], X_test, y_test, ax=ax)
bound = model.path_[best] - model.possible_gain_
later = [best, len(model.path_) - 1]
(line,) = ax.plot(later, [bound, bound], color="#D55E00")
ax.set_ylim(0.8 * model.path_[best], 1.6 * model.path_[best])
ax.set_title(f"Held-out and test error along the {name}", loc="left")
ax.legend([line], ["bound for later iterates"], frameon=False, loc="lower left")
plt.show()

# %%
# After the dashed line the held-out error and the test error rise a little: a later
# iterate would hardly be better. In all twenty splits the most that a later iterate
# gains on test rows is within the bound.
