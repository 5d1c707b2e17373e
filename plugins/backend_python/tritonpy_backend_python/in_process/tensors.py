"""Tensors between the server and a model of its own process."""

from __future__ import annotations

import numpy as np

from tritonpy import DTYPES, Tensor
from tritonpy_backend_python.in_process.ownership import is_held_elsewhere
from tritonpy_worker.api import outgoing
from tritonpy_worker.api import tensor as seen
from tritonpy_worker.api.device_array import DeviceArray

_BF16 = DTYPES["BF16"]


def received(tensor: Tensor) -> seen.Tensor:
    """Return a tensor as a model sees it: a read-only view of the same memory, because others may read it too; from a device a copy on the host."""
    data = tensor.data
    if not isinstance(data, np.ndarray):
        taken = seen.Tensor.from_dlpack(tensor.name, data)
        data = taken._data.to_host() if isinstance(taken._data, DeviceArray) else taken._data
    elif tensor.datatype == "BF16":
        data = data.view(np.uint16)
    if data.flags.writeable:
        data = data.view()
        data.flags.writeable = False
    return seen.Tensor.received(tensor.name, tensor.datatype, tensor.shape, data)


def sent(tensor: seen.Tensor) -> Tensor:
    """Return a model's tensor as the server sends it on: a copy where the model could still write to its memory, which it may use again.

    Otherwise the memory is taken over, and read-only from now on. Raises TritonModelException where the tensor cannot be had from its device.
    """
    if tensor.is_cpu() and tensor._data.flags.writeable:
        if is_held_elsewhere(tensor, "_data"):
            tensor = seen.Tensor.received(tensor.name(), tensor._datatype, tensor._shape, tensor._data.copy())
        else:
            tensor._data.flags.writeable = False
    name, datatype, shape, data = outgoing.outgoing(tensor)
    return Tensor(name, datatype, shape, data.view(_BF16) if datatype == "BF16" else data)
