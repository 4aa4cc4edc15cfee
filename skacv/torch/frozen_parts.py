"""Parts of a network that are not trained, computed once for it and its copies."""

from collections.abc import Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from .batches import take_rows


def frozen_parts(network):
    """The largest parts of a network that have parameters, but none that is trained."""
    parameters = list(network.parameters())
    if parameters and not any(p.requires_grad for p in parameters):
        # Lists of layers have no forward of their own.
        if type(network).forward is not torch.nn.Module.forward:
            return [FrozenPart(network)]
    return [part for child in network.children() for part in frozen_parts(child)]


class FrozenPart:
    """What a frozen part of a network returned for the rows of a batch.

    A copy that calls it with some of these rows needs no computation. Its inputs are
    compared, so that it is computed where they depend on what is trained.
    """

    def __init__(self, module):
        self.module = module
        self.calls, self.is_recording = [], False
        self._hook = module.register_forward_hook(self._record, with_kwargs=True)

    def _record(self, module, args, kwargs, outputs):
        # Statistics of the rows of a batch are others where some are left out.
        has_statistics = any(
            isinstance(part, _BatchNorm) and part.training for part in module.modules()
        )
        if self.is_recording and not (has_statistics or needs_gradient(outputs)):
            self.calls.append(((args, kwargs), outputs))

    @contextmanager
    def recalled(self, rows, n_rows, take=take_rows):
        """Within this context, calls with these rows of the batch are looked up."""
        own = vars(self.module).get("forward")  # which libraries may have put there
        compute, calls = self.module.forward, iter(self.calls)

        def look_up(*args, **kwargs):
            inputs, outputs = next(calls, (None, None))
            try:
                if all_equal(take(inputs, rows, n_rows), (args, kwargs)):
                    return take(outputs, rows, n_rows)
            except ValueError:  # rows are not along the first axis
                pass
            return compute(*args, **kwargs)

        self.module.forward = look_up
        try:
            yield
        finally:
            del self.module.forward
            if own is not None:
                self.module.forward = own

    def remove(self):
        self._hook.remove()
        self.calls.clear()


def needs_gradient(values):
    """Whether some tensor among values depends on what is trained."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return any(needs_gradient(value) for value in values)
    return isinstance(values, torch.Tensor) and values.requires_grad


def all_equal(values, others):
    """Whether tensors, arrays and other values in the same places are equal."""
    if type(values) is not type(others):
        return False
    if isinstance(values, Mapping):
        same_names = list(values) == list(others)
        return same_names and all_equal(list(values.values()), list(others.values()))
    if isinstance(values, list | tuple):
        pairs = zip(values, others)
        return len(values) == len(others) and all(all_equal(*pair) for pair in pairs)
    if isinstance(values, torch.Tensor):
        return torch.equal(values, others)
    if isinstance(values, np.ndarray):
        return np.array_equal(values, others)
    return values == others
