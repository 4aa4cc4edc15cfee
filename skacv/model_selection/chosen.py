"""What a stopping estimator passes on to the iterate that it has chosen."""

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _estimator_has(name):
    """Whether the chosen iterate has a method, or before fit whether all members do."""

    def check(self):
        if "estimator_" in vars(self):
            return hasattr(self.estimator_, name)
        return all(hasattr(member, name) for _, member in self._members())

    return check


def _fitted(name, doc):
    """A property: a fitted attribute of ``estimator_``."""

    def value(self):
        if "estimator_" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name} before it is fitted."
            )
        return getattr(self.estimator_, name)

    return property(value, doc=doc)


class ChosenIterate:
    """Predictions and fitted attributes of ``estimator_``, under their own names."""

    def _chosen(self):
        check_is_fitted(self)
        return self.estimator_

    def predict(self, X):
        """Predict with the chosen iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._chosen().predict(X)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X):
        """Decisions of the chosen iterate, where it is a classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._chosen().decision_function(X)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X):
        """Probabilities of the classes by the chosen iterate, where it has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._chosen().predict_proba(X)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """Logarithms of the probabilities, where the chosen iterate has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._chosen().predict_log_proba(X)

    def at_iteration(self, t):
        """The fitted estimator at iterate ``t`` of the chosen trajectory.

        Nothing is run again, and this object stays at the iterate that it has chosen.

        Parameters
        ----------
        t : int
            Row of ``path_``, from 0; negative counts from the end.

        Returns
        -------
        estimator of the class of ``estimator_``

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            If there is no such row, or its coefficients were not kept.
        """
        return self._chosen().at_iteration(t)

    def staged_predict(self, X):
        """Predict with every iterate of the chosen trajectory.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        yield from self._chosen().staged_predict(X)

    @available_if(_estimator_has("predict_interval"))
    def predict_interval(self, X, coverage=0.9, method="jackknife+"):
        """Prediction intervals of the chosen iterate, as its estimator makes them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            Share of the targets of unseen rows that the intervals should cover.
        method : {"jackknife+", "loo", "risk"}, default="jackknife+"
            What they are made from. The fit must have computed it: "risk" needs
            the estimator's ``risk``, the others its ``loo``, on top of what the
            criterion needs; "jackknife+" needs ``keep_data=True``.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if
            the fit has not computed what the method needs.
        """
        return self._chosen().predict_interval(X, coverage, method)

    @available_if(_estimator_has("coef_interval"))
    def coef_interval(self, columns=None, coverage=0.95, **settings):
        """Confidence intervals of the chosen iterate's coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all.
        coverage : float, default=0.95
            How often an interval should cover the true coefficient, whatever has been
            chosen: the iterate is debiased.
        **settings : dict
            ``iteration``, ``covariance`` and ``X_unlabelled`` of the estimator's own
            method, such as :meth:`TrajectoryLasso.coef_interval`.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As the estimator's own method does: it needs ``keep_data=True`` and
            ``risk=True``.
        """
        return self._chosen().coef_interval(columns, coverage, **settings)

    @available_if(_estimator_has("coef_table"))
    def coef_table(self, columns=None, **settings):
        """Estimates, standard errors, tests and intervals of coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all.
        **settings : dict
            Of the estimator's own method: ``iteration``, ``covariance`` and
            ``X_unlabelled``, and ``coverage`` where it has intervals.

        Returns
        -------
        dict of ndarray
            As :meth:`TrajectoryLasso.coef_table` gives it, or a classifier's own.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As :meth:`coef_interval` does.
        """
        return self._chosen().coef_table(columns, **settings)

    @available_if(_estimator_has("predict_mean_interval"))
    def predict_mean_interval(self, X, coverage=0.95, **settings):
        """Confidence intervals of what targets are on average, given rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that are fixed, or new: those of fit know their own noise.
        coverage : float, default=0.95
            How often an interval should cover the true mean, whatever has been chosen.
        **settings : dict
            ``iteration``, ``covariance`` and ``X_unlabelled`` of the estimator's own
            method, such as :meth:`TrajectoryLasso.predict_mean_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As :meth:`coef_interval` does.
        """
        return self._chosen().predict_mean_interval(X, coverage, **settings)

    coef_ = _fitted("coef_", "Coefficients of the chosen iterate.")
    intercept_ = _fitted("intercept_", "Intercept of the chosen iterate.")
    classes_ = _fitted(
        "classes_", "Labels of the classes, where the estimator is a classifier."
    )
    n_features_in_ = _fitted("n_features_in_", "Number of features seen in fit.")
    feature_names_in_ = _fitted(
        "feature_names_in_", "Names of the features seen in fit, where X has them."
    )
