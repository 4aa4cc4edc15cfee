"""Equality of dataclasses that hold arrays."""

from dataclasses import Field, fields
from typing import Any, ClassVar

import numpy as np


class ComparesArrays:
    """Equality of a ``dataclass(eq=False)``: arrays in fields are equal by entries."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of the subclass

    def __eq__(self, right):
        if type(right) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]
        return all(_equal(getattr(self, name), getattr(right, name)) for name in names)


def _equal(left, right):
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)
    return left == right
