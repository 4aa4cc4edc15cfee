"""Tables of what was compared, and the curves, made of ``results_``."""

from itertools import chain
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from .._estimator.delegation import last_step
from .._estimator.devices import convert_to_numpy
from .._estimator.estimates.fitted_state import loss_name
from .._estimator.prediction.inference import as_frame
from .blend import Blend
from .incomplete_targets import leaderboard_of

# Columns of ``leaderboard``, which but for the corrected score are those of
# ``results_``.
COLUMNS = (
    "member",
    "weight",
    "score",
    "score_se",
    "score_corrected",
    "metric",
    "better",
    "best_iter",
    "n_iter",
    "fit_time",
    "left_out",
)
# Columns of whole numbers that some rows lack.
INTEGER_COLUMNS = {"best_iter": "Int64", "n_iter": "Int64"}


class ComparedResults:
    """What a stopping estimator has compared, as tables and curves.

    All are made of ``results_`` and of the fitted members. ``_best_indices`` has the
    index of the best combination of every member, among the candidates that were run.
    """

    def leaderboard(self) -> Any:
        """Rank the members and their blend by one metric, best first.

        A member appears with its best combination of ``param_grid``; ``cv_results_``
        has them all. The metric is the loss of the members (the log loss for a blend of
        classifiers), the scorer in ``criterion``, or the accuracy or R^2 for members of
        different losses. The columns are:

        * "member" and "weight", its weight in ``estimator_`` (1 for the blend);
        * "score" on held-out rows, its standard error "score_se", the "metric" and
          which scores are "better", "smaller" or "greater" ones;
        * "score_corrected", the score without the optimism of having picked the best
          iterate and parameters of the member, or the weights of the blend, from many;
          NaN where ``best_score_corrected_`` does not exist;
        * "best_iter", the chosen iterate, and "n_iter", the iterations run, which are 1
          of a model that is fitted once;
        * "fit_time", seconds for all combinations of the member;
        * "left_out", why a member was not run, otherwise empty.

        Where rows of y lack some of several targets, a first column "target" names the
        target, whose members are ranked by themselves.

        Members whose scores differ by less than "score_se" are nearly equal: with other
        rows of the same kind, either may come first.

        Returns
        -------
        DataFrame, or dict of ndarray
            One row per member, and one for the blend if several members have weight, or
            for the average of iterates. A dict if pandas is not installed.

        Raises
        ------
        NotFittedError
            If this object is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> members = [("strong", TrajectoryLasso(9.0)), ("weak", TrajectoryLasso(0.1))]
        >>> model = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, y)
        >>> model.leaderboard()["member"].tolist()
        ['weak', 'strong']
        """
        check_is_fitted(self)
        if "estimators_" in vars(self):
            return leaderboard_of(self.estimators_, self.target_names_)
        candidates, rows = self._candidate_rows(), []
        corrected = (
            {} if isinstance(self._corrected, str) else self._corrected.of_members
        )
        of_rows = [corrected.get(name, np.nan) for name in self.results_["member"]]
        results = {**self.results_, "score_corrected": of_rows}
        for member, index in self._best_indices.items():
            row = {name: results[name][candidates[index]] for name in COLUMNS}
            combinations = [k for k in candidates if results["member"][k] == member]
            row["fit_time"] = sum(results["fit_time"][k] for k in combinations)
            rows.append(row)
        kept, _ = last_step(self.estimator_)
        if isinstance(kept, Blend):
            blend = {
                "member": kept.name,
                "weight": 1.0,
                "score": self.best_score_,
                "score_se": self.best_score_se_,
                "score_corrected": getattr(self, "best_score_corrected_", np.nan),
                "best_iter": np.nan,
                "n_iter": np.nan,
                "fit_time": sum(row["fit_time"] for row in rows),
            }
            rows.insert(0, rows[0] | blend)
        sign = self._direction()
        # An undefined score is the worst.
        rows.sort(key=lambda row: np.nan_to_num(-sign * row["score"], nan=np.inf))
        listed = set(self._best_indices)
        for k, member in enumerate(results["member"]):
            if member not in listed:  # none of its combinations was run
                rows.append({name: results[name][k] for name in COLUMNS})
                listed.add(member)
        table = {name: np.array([row[name] for row in rows]) for name in COLUMNS}
        table = as_frame(table)
        return table.astype(INTEGER_COLUMNS) if hasattr(table, "astype") else table

    @property
    def cv_results_(self) -> dict[str, Any]:
        """All candidates, as GridSearchCV of scikit-learn has them."""
        check_is_fitted(self)
        results, candidates = self.results_, self._candidate_rows()
        table = {name: [results[name][k] for k in candidates] for name in results}
        params, sign = table["params"], self._direction()
        columns = {"fit_time": np.array(table["fit_time"])}
        for name in dict.fromkeys(chain.from_iterable(params)):
            values = np.ma.masked_all(len(params), dtype=object)
            for k, combination in enumerate(params):
                if name in combination:
                    values[k] = combination[name]
            columns[f"param_{name}"] = values
        columns |= {"params": params, "member": np.array(table["member"])}
        if self._fold_scores is not None:
            scores = sign * self._fold_scores
            for k, scores_of_fold in enumerate(scores.T):
                columns[f"split{k}_test_score"] = scores_of_fold
            columns["std_test_score"] = scores.std(axis=1)
        mean = sign * np.array(table["score"])
        columns["mean_test_score"] = mean
        columns["se_test_score"] = np.array(table["score_se"])
        worst_last = np.nan_to_num(-mean, nan=np.inf)
        rank = rankdata(worst_last, method="min").astype(np.int32)
        return columns | {"rank_test_score": rank}

    @property
    def best_index_(self) -> int:
        """The row of ``cv_results_`` of ``best_member_`` with ``best_params_``."""
        check_is_fitted(self)
        return self._best_indices[self.best_member_]

    @property
    def best_estimator_(self) -> Any:
        """``estimator_``, under the name that it has in GridSearchCV."""
        check_is_fitted(self)
        return self.estimator_

    @property
    def evals_result_(self) -> dict[str, dict[str, dict[str, np.ndarray]]]:
        """Losses of every iterate on training and on held-out rows."""
        check_is_fitted(self)
        results, candidates = self.results_, self._candidate_rows()
        curves = {}
        for name, path in self.member_paths_.items():
            metric = results["loss"][candidates[self._best_indices[name]]]
            curves[name] = {"held_out": {metric: path}}
        for name, member in self.members_.items():
            if hasattr(member, "train_path_"):  # a mean of iterates has none
                member = convert_to_numpy(member)
                training = {loss_name(member): member.train_path_}
                curves[name] = {"train": training, **curves[name]}
        return curves

    @property
    def held_out_prediction_(self) -> np.ndarray:
        """What ``estimator_`` predicts for training rows, without having seen them."""
        check_is_fitted(self)
        predictions = vars(self).get("_held_out_prediction")
        if predictions is None:
            raise AttributeError(
                "Held-out predictions are not available with a RowSummary or Dask "
                "input, after drop_record(), or after loading a pickle of a fit to "
                "many rows."
            )
        return predictions

    def _candidate_rows(self):
        """The rows of ``results_`` of all candidates, for the criterion that chose."""
        # Candidates that were not run have taken no time, unless they have failed.
        results = zip(self.results_["criterion"], self.results_["fit_time"])
        return [
            k
            for k, (name, seconds) in enumerate(results)
            if name == self.criterion_ and not np.isnan(seconds)
        ]

    def _direction(self):
        """1.0 if greater scores are better, else -1.0."""
        best = self._best_indices[self.best_member_]
        better = self.results_["better"][self._candidate_rows()[best]]
        return 1.0 if better == "greater" else -1.0
