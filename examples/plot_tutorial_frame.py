"""
From a raw frame to a report
============================

Real tables contain strings, categories, dates and missing values, and often a model is
needed before anybody has cleaned them. ``SelfStoppingClassifier`` accepts such a frame
as it is. This tutorial goes from the frame to the leaderboard, to the columns that
matter, and to a saved model that predicts new rows, one of them with a category that
the model has never seen.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from skacv import RiskPathDisplay, SelfStoppingClassifier

plt.rcParams["font.size"] = 11

# %%
# A raw frame
# -----------
#
# The data are measurements of tumours, benign or malignant. To make a raw table of
# them, the texture becomes a category of four levels, and a fifth of the values of
# smoothness are deleted. Three columns say nothing about the tumour: the sample number,
# a clinic and a date, all drawn at random. A good model should not use them.

data = load_breast_cancer(as_frame=True)
X = data.data.iloc[:, :10].rename(columns=lambda name: name.removeprefix("mean "))
y = data.target.map({0: "malignant", 1: "benign"})

rng = np.random.default_rng(0)
levels = ["fine", "medium", "coarse", "very coarse"]
X["texture"] = pd.qcut(X["texture"], 4, labels=levels)
X.loc[rng.random(len(X)) < 0.2, "smoothness"] = np.nan
X["sample"] = [f"S-{number:04}" for number in rng.permutation(len(X))]
X["clinic"] = rng.choice(["north", "south", "harbour"], len(X))
days = rng.integers(0, 700, len(X))
X["date"] = pd.Timestamp("2024-01-02") + pd.to_timedelta(days, unit="D")

shown = ["radius", "texture", "smoothness", "sample", "clinic", "date"]
print(X[shown].head(4).to_string(index=False))

X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(f"\n{len(X)} tumours: {len(X_train)} training rows, {len(X_test)} test rows")

# %%
# Fit
# ---
#
# Five models, the members, run once each on all training rows, side by side with copies
# that each leave out one of five folds. ``verbose=1`` prints a line for each member
# when it is done: the iterate with the smallest loss on rows that the copies have not
# seen, and the number of iterates.

model = SelfStoppingClassifier(random_state=0, verbose=1).fit(X_train, y_train)

# %%
# The last line says what is kept: a blend, the weighted mean of the probabilities of
# several members, each at its best iterate.
#
# How columns are encoded
# -----------------------
#
# Each member receives the columns in a form that it supports. ``encoder_`` records the
# kind of every column and, if it was dropped, the reason.

for name in shown:
    kind = model.encoder_.kinds_.get(name, "dropped")
    print(f"{name:12}{kind:10}{model.encoder_.dropped_.get(name, '')}")

# %%
# The sample number is dropped. The clinic and the date stay: their form does not show
# that they were drawn at random.
#
# The report
# ----------
#
# ``leaderboard()`` ranks the members and the blend by their log loss on held-out rows.

board = model.leaderboard()
columns = ["member", "weight", "score", "score_se", "best_iter", "n_iter"]
print(board[columns].round(3).to_string(index=False))

probabilities = model.predict_proba(X_test)
test_loss = log_loss(y_test, probabilities, labels=model.classes_)
accuracy = accuracy_score(y_test, model.predict(X_test))
expected, error = model.best_score_corrected_, model.best_score_corrected_se_
print(f"\nlog loss expected on new rows: {expected:.3f} ± {error:.3f}")
print(f"log loss on test rows:         {test_loss:.3f}")
print(f"accuracy on test rows:         {accuracy:.3f}")

# %%
# The blend has a smaller loss than each of its members. The weight of the extra trees
# is zero: the blend does not use them. The loss on test rows is within two standard
# errors of ``best_score_corrected_``, the loss to expect on new rows.
#
# The figure shows where the table comes from: the held-out loss of every iterate of
# every member. Runs differ in length, so the axis is the share of each run. A dot marks
# the iterate that a member keeps; its number and the weight in the blend follow the
# name. The thick line is the member with the largest weight, with its standard error,
# and the dashed line is the loss of the blend.

figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
display = RiskPathDisplay.from_estimator(model, ax=ax)
plt.show()

# %%
# Which columns matter
# --------------------
#
# If the model uses a column, permuting the column's values in the test rows increases
# the log loss. This increase is the importance of the column.

importance = permutation_importance(
    model, X_test, y_test, scoring="neg_log_loss", random_state=0
)
order = importance.importances_mean.argsort()
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
means, spreads = importance.importances_mean, importance.importances_std
ax.barh(X_test.columns[order], means[order], xerr=spreads[order])
ax.set_xlabel("increase of the log loss, mean ± s.d.")
plt.show()

# %%
# The concave points and the texture, which is a category here, matter most. The clinic
# and the date matter less than a fifth as much, and the sample number not at all, since
# it was dropped.
#
# Save, load and predict
# ----------------------
#
# ``joblib`` saves the model together with its encoder. ``drop_record()`` returns a copy
# without what predictions do not need, such as all other iterates. The model in use
# keeps them, for figures.

with TemporaryDirectory() as folder:
    whole, small = Path(folder) / "whole.joblib", Path(folder) / "small.joblib"
    joblib.dump(model, whole)
    joblib.dump(model.drop_record(), small)
    sizes = [path.stat().st_size for path in (whole, small)]
    loaded = joblib.load(small)

print(f"with the record {sizes[0] / 1e6:.1f} MB, without it {sizes[1] / 1e6:.1f} MB")
same = np.array_equal(loaded.predict_proba(X_test), probabilities)
print(f"same probabilities: {same}")

# %%
# The loaded model predicts the same, and its file is much smaller.
#
# New rows are as raw as the table. The clinic of the first one occurs in no training
# row. The area of the second one is missing, although no training row lacks it. The
# columns are in a different order.

new = X_test.head(3).copy()
new["clinic"] = ["mountain", "north", "south"]
new["area"] = [new["area"].iloc[0], np.nan, new["area"].iloc[2]]
new = new[new.columns[::-1]]

report = new[["clinic", "area", "texture"]].copy()
malignant = list(loaded.classes_).index("malignant")
report["malignant"] = loaded.predict_proba(new)[:, malignant].round(3)
report["as it was"] = probabilities[:3, malignant].round(3)
report["truth"] = y_test.head(3)
print(report.to_string(index=False))

# %%
# "As it was" is the probability before the clinic and the area were changed. Neither
# the unknown clinic nor the missing area changes it much.
