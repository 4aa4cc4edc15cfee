"""Cross-validation folds alongside a user's training loop."""

from typing import Any

from numpy.typing import ArrayLike

from .._any_optimiser.alongside import FollowedLoop


class Alongside(FollowedLoop):
    """Cross-validation folds that are updated along with a training loop.

    It is created by :meth:`skacv.torch.TrajectoryACV.alongside`.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Estimated mean loss of the iterates on unseen rows, and its standard error.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the minimum of the path.
    best_parameters_ : dict of str to Tensor
        The module's parameters at this minimum.
    n_steps_ : int
        Number of updates so far.
    """

    def step(self, rows: ArrayLike | None = None) -> None:
        """Follow an update of the loop: call it after every ``optimizer.step()``.

        Parameters
        ----------
        rows : Tensor or array-like of int, default=None
            Indices of the rows used in the update; None means all.

        Raises
        ------
        ValueError
            If one of the first ten updates differs from the update of the loop, or if a
            fold diverges.

        Warns
        -----
        UserWarning
            Once, if a later update differs.
        """
        self._follow(self._model.start(), rows)

    def load_best(self) -> Any:
        """Load the best parameters into the module.

        Returns
        -------
        torch.nn.Module
        """
        self._model.module.load_state_dict(self.best_parameters_, strict=False)
        return self._model.module

    def _keep(self, params):
        self.best_parameters_ = params
