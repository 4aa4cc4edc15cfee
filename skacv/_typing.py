"""Types that several modules share."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

# The type of a function or a method, which a decorator keeps.
Method = TypeVar("Method", bound=Callable[..., Any])
Standardize: TypeAlias = bool | Literal["auto"]
RandomState: TypeAlias = int | np.random.RandomState | None
