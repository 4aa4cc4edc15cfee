"""Arrays of other namespaces, such as those of a GPU: which they are, there and back."""

import numpy as np
from scipy import sparse


def is_away(array):
    """Whether an array is neither NumPy's nor sparse, but of another namespace."""
    return not (isinstance(array, np.ndarray) or sparse.issparse(array))


def namespace_of(array):
    """The functions of the array API for an array that is away."""
    return _array_api_compat().array_namespace(array)


def dtype_of(array):
    """Its dtype, as NumPy names it."""
    if not is_away(array):
        return array.dtype
    return np.dtype(str(array.dtype).rpartition(".")[2])


def there(array, like):
    """A NumPy array where ``like`` is: in its namespace, on its device."""
    array = np.require(array, requirements="CW")
    device = _array_api_compat().device(like)
    return namespace_of(like).asarray(array, device=device)


def here(array):
    """An array that is away as a NumPy array of its own."""
    compat = _array_api_compat()
    namespace = compat.array_namespace(array)
    if compat.is_torch_array(array) or compat.is_cupy_array(array):
        array = compat.to_device(array, "cpu")
    elif compat.is_array_api_strict_namespace(namespace):
        array = compat.to_device(array, namespace.Device("CPU_DEVICE"))
    return np.asarray(array).copy()


def picked(array, index, axis=0):
    """Some rows, or columns, of an array that is away, by their numbers."""
    return namespace_of(array).take(array, there(index, array), axis=axis)


def _array_api_compat():
    """The library that knows the namespaces of arrays."""
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            "Arrays on a device need array-api-compat: pip install skacv[array-api]."
        ) from None
    return array_api_compat
