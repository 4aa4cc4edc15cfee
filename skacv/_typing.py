"""Types that several modules share."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

# What a decorator gives back as it was: a function or a method of that type.
Method = TypeVar("Method", bound=Callable[..., Any])
RandomState: TypeAlias = int | np.random.RandomState | None
