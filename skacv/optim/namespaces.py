"""Arrays of other libraries, on a GPU for instance, and their conversion."""

from sys import modules

import numpy as np
from scipy import sparse


def is_on_device(array):
    """Whether an array is neither NumPy's nor sparse, but of another namespace."""
    return not (isinstance(array, np.ndarray) or sparse.issparse(array))


def namespace_of(array):
    """The functions of the array API for an array; NumPy for a sparse one."""
    return _array_api_compat().array_namespace(array) if is_on_device(array) else np


def dtype_of(array):
    return np.dtype(str(array.dtype).rpartition(".")[2])


def as_dtype(array, dtype):
    """An array converted to ``dtype``, a dtype of NumPy."""
    if not is_on_device(array):
        return array.astype(dtype, copy=False)
    namespace = namespace_of(array)
    return namespace.astype(array, getattr(namespace, np.dtype(dtype).name), copy=False)


def to_device_of(array, like):
    """A NumPy array, copied to the namespace and the device of ``like``."""
    if not is_on_device(like):
        return array
    array = np.require(array, requirements=["C", "W"])
    device = _array_api_compat().device(like)
    return namespace_of(like).asarray(array, device=device)


def to_numpy(array):
    """An array in NumPy; arrays of other namespaces are copied."""
    if not is_on_device(array):
        return array
    compat, namespace = _array_api_compat(), namespace_of(array)
    if compat.is_torch_array(array) or compat.is_cupy_array(array):
        array = compat.to_device(array, "cpu")
    elif compat.is_array_api_strict_namespace(namespace):
        array = compat.to_device(array, namespace.Device("CPU_DEVICE"))
    return np.asarray(array).copy()


def empty(shape, dtype, like):
    """An uninitialised array, in the namespace and on the device of ``like``."""
    if not is_on_device(like):
        return np.empty(shape, dtype)
    namespace, device = namespace_of(like), _array_api_compat().device(like)
    dtype = getattr(namespace, np.dtype(dtype).name)
    return namespace.empty(shape, dtype=dtype, device=device)


def take(array, index, axis=0):
    return namespace_of(array).take(array, to_device_of(index, array), axis=axis)


def rows_in(X, index):
    """Rows of a matrix of any kind: a view of a slice, a copy of an index."""
    if not is_on_device(X):
        return X[index]
    if isinstance(index, slice):
        return X[slice(*index.indices(X.shape[0])), :]
    return take(X, np.arange(X.shape[0])[index])


def part_of(matrix, rows, columns):
    """Rows and columns of an array: a view if both are slices, else one copy."""
    if is_on_device(matrix):
        part = rows_in(matrix, rows)
        if isinstance(columns, slice):
            return part[:, columns]
        return take(part, columns, axis=1)
    if isinstance(columns, slice):
        return matrix[rows, columns]
    if isinstance(rows, slice):
        return matrix[rows].take(columns, axis=1)
    return matrix[np.ix_(rows, columns)]


def is_writeable(array):
    return not (is_on_device(array) and _array_api_compat().is_jax_array(array))


def free_bytes(array):
    """Free memory of the device of an array; None if it is not known."""
    if not is_on_device(array):
        return None
    compat = _array_api_compat()
    if compat.is_cupy_array(array):
        return array.device.mem_info[0]
    if compat.is_torch_array(array) and array.device.type == "cuda":
        return modules["torch"].cuda.mem_get_info(array.device)[0]
    return None


def _array_api_compat():
    """The module ``array_api_compat``, an optional dependency."""
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            "Arrays on a device need array-api-compat: pip install skacv[array-api]."
        ) from None
    return array_api_compat
