"""Gathering of inputs that are already in device memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch

from tritonpy import Batch, Tensor
from tritonpy.execution import CPU

Gather = Callable[[Batch], list[Tensor]]


def gather_on_device(device: Any, batch: Batch, gather: Gather) -> list[Tensor]:
    """Return the inputs of `batch`; those that every request has on a device stay there.

    `gather` gathers the others. A batch with empty slots or ragged inputs is copied to the host
    first.
    """
    requests = batch.requests
    away = [name for name, tensor in requests[0].inputs.items() if tensor.device[0] != CPU[0]]
    if not away and all(
        tensor.device[0] == CPU[0] for request in requests for tensor in request.inputs.values()
    ):
        return gather(batch)
    plain = batch.slots is None and (batch.model is None or batch.model.layout is None)
    whole = [
        name
        for name in away
        if plain and all(each.inputs[name].device[0] != CPU[0] for each in requests)
    ]
    here = [
        msgspec.structs.replace(
            request,
            inputs={
                name: _on_host(tensor)
                for name, tensor in request.inputs.items()
                if name not in whole
            },
        )
        for request in requests
    ]
    rest = (
        gather(msgspec.structs.replace(batch, requests=here))
        if here[0].inputs or batch.controls or batch.states
        else []
    )
    return [*[_concatenate(name, device, batch) for name in whole], *rest]


def _concatenate(name: str, device: Any, batch: Batch) -> Tensor:
    first = batch.requests[0].inputs[name]
    parts = [torch.from_dlpack(request.inputs[name].data).to(device) for request in batch.requests]
    value = parts[0] if len(parts) == 1 else torch.cat(parts)
    kind, number = value.__dlpack_device__()
    return Tensor(name, first.datatype, tuple(value.shape), value, (int(kind), number))


def _on_host(tensor: Tensor) -> Tensor:
    if tensor.device[0] == CPU[0]:
        return tensor
    return Tensor(
        tensor.name, tensor.datatype, tensor.shape, torch.from_dlpack(tensor.data).cpu().numpy()
    )
