"""Whether an optimiser works entry by entry, tried on a few random gradients."""

import torch

N_UPDATES = 3
# By what the gradients of the other replica are larger.
LARGER = 100.0


def check_elementwise(optimizer, params):
    """Raise where a parameter's update depends on other entries than its own.

    A replica beside another, of other gradients, must move as it does alone.
    """
    start = list(params.values())
    generator = torch.Generator().manual_seed(0)

    def drawn():
        return [
            torch.randn(value.shape, generator=generator, dtype=value.dtype)
            for value in start
        ]

    own = [drawn() for _ in range(N_UPDATES)]
    beside = [
        [torch.stack([a, LARGER * b]) for a, b in zip(each, drawn())] for each in own
    ]
    try:
        alone = _moved(optimizer, start, own)
        replica = _moved(optimizer, [torch.stack([v, v]) for v in start], beside)
    except Exception as error:  # whatever an optimiser may raise
        raise ValueError(
            f"Replicas cannot share this optimiser, which fails on them: {error}"
        ) from error
    if not all(_same(a, b[0]) for a, b in zip(alone, replica)):
        raise ValueError(
            "Replicas cannot share this optimiser: its update of an entry depends on "
            "other entries of the parameter, as norms, factors and line searches do."
        )


def _moved(optimizer, start, gradients):
    """Where a few updates lead."""
    params = [value.clone().requires_grad_() for value in start]
    made = optimizer(params)
    for each in gradients:
        for value, gradient in zip(params, each):
            value.grad = gradient.to(value.device)
        made.step()
    return [value.detach() for value in params]


def _same(one, other):
    """Up to rounding, which may differ with the length of an array."""
    tolerance = 1e3 * torch.finfo(one.dtype).eps
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance)
