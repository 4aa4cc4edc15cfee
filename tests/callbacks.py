"""Callbacks, which scikit-learn has from 1.9 on."""

import pytest
import sklearn

needs_callbacks = pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)


class StopAtFive:
    """Ends the fit after five updates."""

    def setup(self, estimator, context):
        self.n = 0

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.n += context.task_name == "update"
        return self.n >= 5
