"""Tensors between the server and a model of its own process."""

from __future__ import annotations

import numpy as np

from tritonpy import DTYPES, Tensor
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
    """Return a model's tensor as the server sends it on: a copy, because the model may use its memory again, of all that it can write to.

    Raises TritonModelException where it cannot be had from its device.
    """
    name, datatype, shape, data = outgoing.outgoing(tensor)
    if data.flags.writeable and tensor.is_cpu():
        data = data.copy()
    return Tensor(name, datatype, shape, data.view(_BF16) if datatype == "BF16" else data)
