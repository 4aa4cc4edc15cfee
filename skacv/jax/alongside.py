"""Cross-validation folds alongside a user's training loop."""

from typing import Any

from numpy.typing import ArrayLike

from .._any_optimiser.alongside import FollowedLoop


class Alongside(FollowedLoop):
    """Cross-validation folds that are updated along with a training loop.

    It is created by :meth:`skacv.jax.TrajectoryACV.alongside`.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Estimated mean loss of the iterates on unseen rows, and its standard error.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the minimum of the path.
    best_params_ : pytree of arrays
        The loop's parameters at this minimum.
    n_steps_ : int
        Number of updates so far.
    """

    # The start by the name that it has in JAX.
    def __init__(
        self, model: Any, params: Any, data: Any, folds: Any, every: int
    ) -> None:
        super().__init__(model, params, data, folds, every)

    def step(self, params: Any, rows: ArrayLike | None = None) -> None:
        """Follow an update of the loop: call it after every update.

        Parameters
        ----------
        params : pytree of arrays
            The loop's parameters after the update.
        rows : array-like of int, default=None
            Indices of the rows used in the update; None means all. Every new number of
            rows triggers one compilation.

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
        self._follow(params, rows)

    def _keep(self, params):
        self.best_params_ = params
