"""Conversion of tensors between the server and a model in its process."""

from __future__ import annotations

import numpy as np

from tritonpy import DTYPES, Tensor
from tritonpy_backend_python.in_process.ownership import has_other_references
from tritonpy_worker.api import outgoing_tensor
from tritonpy_worker.api import tensor as seen
from tritonpy_worker.api.device_array import DeviceArray

_BF16 = DTYPES["BF16"]


def received_tensor(tensor: Tensor) -> seen.Tensor:
    """Return a tensor as a model sees it: a read-only view, because others may read the memory.

    A tensor on a device is copied to the host.
    """
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


def sent_tensor(tensor: seen.Tensor) -> Tensor:
    """Return a model's tensor as the server sends it.

    If the model may still write to the memory, the tensor is a copy. Otherwise its memory is taken
    and becomes read-only. Raises `TritonModelException` if it cannot be copied from its device.
    """
    if tensor.is_cpu() and tensor._data.flags.writeable:
        if has_other_references(tensor, "_data"):
            tensor = seen.Tensor.received(
                tensor.name(), tensor._datatype, tensor._shape, tensor._data.copy()
            )
        else:
            tensor._data.flags.writeable = False
    name, datatype, shape, data = outgoing_tensor.outgoing_tensor(tensor)
    return Tensor(name, datatype, shape, data.view(_BF16) if datatype == "BF16" else data)
