"""Parameters and their optimiser, of one run or of replicas that share it."""

from inspect import Parameter, signature

import torch


class Updates:
    """Parameters and their optimiser, which changes them in place, and its scheduler.

    Replicas are a leading axis of every parameter: an optimiser that works entry by
    entry treats them as separate runs.
    """

    def __init__(self, model, start, objective):
        # ``objective(params, X, y, weights)`` is the sum of those of replicas.
        self.params = {
            name: value.clone().requires_grad_() for name, value in start.items()
        }
        self._objective = objective
        self._optimizer = model.optimizer(list(self.params.values()))
        self._scheduler = None
        if model.scheduler is not None:
            self._scheduler = model.scheduler(self._optimizer)
            if needs_argument(self._scheduler.step):
                raise ValueError(
                    f"{type(self._scheduler).__name__} needs a loss at every step, and "
                    "that of held-out rows is known only alongside a loop: leave "
                    "scheduler=None, call alongside(X, y), and after every update "
                    "acv.step(rows, optimizer) and scheduler.step(acv.path_[-1])."
                )
        # An optimiser that evaluates the objective itself, as L-BFGS does, asks for it.
        self._needs_closure = needs_argument(self._optimizer.step)

    def step(self, X, y, weights):
        """One update on some rows."""

        def closure():
            self._optimizer.zero_grad()
            objective = self._objective(self.params, X, y, weights)
            objective.backward()
            return objective

        if self._needs_closure:
            self._optimizer.step(closure)
        else:
            closure()
            self._optimizer.step()
        return self._with_schedule()

    def follow(self, gradients):
        """One update by given gradients, by the names of the parameters."""
        for name, value in self.params.items():
            value.grad = gradients[name]
        self._optimizer.step()
        return self._with_schedule()

    def take_settings(self, optimizer):
        """Go on with learning rates, and all other settings, of another optimiser."""
        n_own, n_others = len(self._optimizer.param_groups), len(optimizer.param_groups)
        if n_own != n_others:
            raise ValueError(
                f"optimizer has {n_others} groups of parameters, but that of "
                f"TrajectoryACV makes {n_own}: make both by the same function."
            )
        copy_settings(optimizer.param_groups, self._optimizer)

    def _with_schedule(self):
        if self._scheduler is not None:
            self._scheduler.step()
        return self

    @torch.no_grad()
    def reset_first(self, last, loop_params):
        """Put the first replica at ``loop_params``, as :meth:`Backend.reset_first`."""
        own = {name: value[0] for name, value in self.params.items()}
        compared = compare_updates(loop_params, own, last)
        for name, value in own.items():
            value[:] = loop_params[name]
        return self, *compared


@torch.no_grad()
def compare_updates(params, others, last):
    """The distance of two updates of ``last``, and the length and rounding of them."""
    squares = []
    for name, value in params.items():
        parts = value - others[name], others[name] - last[name], value
        squares.append(torch.stack([(part**2).sum() for part in parts]))
    distance, length, size = torch.stack(squares).sum(dim=0).sqrt().tolist()
    return distance, length, size * torch.finfo(value.dtype).eps


def copy_settings(groups, optimizer):
    """Give an optimiser the settings of another one's groups of parameters."""
    for own, other in zip(optimizer.param_groups, groups):
        own.update(other | {"params": own["params"]})


def needs_argument(method):
    """Whether a method cannot be called without arguments."""
    parameters = signature(method).parameters.values()
    return any(p.default is Parameter.empty for p in parameters)


def check_elementwise(optimizer, params, n_updates=3, factor=100.0):
    """Raise if the update of an entry depends on other entries of the parameter."""
    # A run must have the same updates alone and as the first of two replicas, the
    # second of which has gradients ``factor`` times as large.
    start = list(params.values())
    generator = torch.Generator().manual_seed(0)

    def random_gradients():
        return [
            torch.randn(value.shape, generator=generator, dtype=value.dtype)
            for value in start
        ]

    gradients = [random_gradients() for _ in range(n_updates)]
    paired = [
        [torch.stack([a, factor * b]) for a, b in zip(update, random_gradients())]
        for update in gradients
    ]
    try:
        single_run = _params_after(optimizer, start, gradients)
        replicas = _params_after(
            optimizer, [torch.stack([v, v]) for v in start], paired
        )
    except Exception as error:  # whatever an optimiser may raise
        raise ValueError(
            f"Replicas cannot share this optimiser, which fails on them: {error}"
        ) from error
    # Rounding may differ with the length of an array.
    eps = torch.finfo(start[0].dtype).eps
    if not all(
        torch.allclose(a, b[0], rtol=1e3 * eps, atol=1e3 * eps)
        for a, b in zip(single_run, replicas)
    ):
        raise ValueError(
            "Replicas cannot share this optimiser: its update of an entry depends on "
            "other entries of the parameter, as norms, factors and line searches do."
        )


def _params_after(optimizer, start, gradients):
    """Parameters after one update for each item of ``gradients``."""
    params = [value.clone().requires_grad_() for value in start]
    torch_optimizer = optimizer(params)
    for update in gradients:
        for value, gradient in zip(params, update):
            value.grad = gradient.to(value.device)
        torch_optimizer.step()
    return [value.detach() for value in params]
