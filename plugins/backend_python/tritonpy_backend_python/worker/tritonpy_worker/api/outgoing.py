"""A tensor as the transport takes it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .device_array import DeviceArray
from .tensor import Tensor


class Outgoing(NamedTuple):
    """Name, type, shape and the array on the host: C-contiguous; BYTES is flat uint8 in wire form, BF16 is uint16."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]


_make = partial(tuple.__new__, Outgoing)  # half the time of calling the class


def outgoing(tensor: Tensor) -> Outgoing:
    """Return what to send for a tensor; one that lies on a device is copied to the host now.

    Raises TritonModelException where the device does not give it.
    """
    data = tensor._data
    if type(data) is not np.ndarray and isinstance(data, DeviceArray):
        data = data.to_host()
    return _make((tensor._name, tensor._datatype, tensor._shape, data))
