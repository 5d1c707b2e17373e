from __future__ import annotations

import numpy as np
import pytest
import torch

from tritonpy import Batch, Tensor
from tritonpy.execution import gather
from tritonpy_backend_torch.pytorch.device_inputs import gather_on_device

HERE = torch.device("cpu")  # stands in for the device
GPU = (2, 0)


def away(name, *values):
    return Tensor(name, "FP32", (len(values),), torch.tensor(values), GPU)


def here(name, *values):
    return Tensor.from_numpy(name, np.array(values, np.float32))


@pytest.fixture
def harness(models, load):
    from ..models import AddSub

    models.script(AddSub())
    io = """ max_batch_size: 8 input [{ name: "INPUT0" data_type: TYPE_FP32 dims: 2 }, { name: "INPUT1" data_type: TYPE_FP32 dims: 2 }]
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 2 }"""
    with load('name: "m" backend: "pytorch"' + io) as found:
        yield found


def batch(harness, *inputs, **more):
    requests = []
    for tensors in inputs:
        request = harness.request({})
        request.inputs = {tensor.name: tensor for tensor in tensors}
        request.batch_size = tensors[0].shape[0]
        requests.append(request)
    return Batch(requests, model=harness.model, **more)


def values(tensors):
    return {tensor.name: torch.as_tensor(tensor.data).tolist() for tensor in tensors}


def test_host_inputs_are_gathered_on_the_host(harness):
    seen = []
    one = batch(harness, [here("a", 1, 2)], [here("a", 3)])
    assert values(gather_on_device(HERE, one, lambda each: seen.append(each) or gather(each))) == {
        "a": [1, 2, 3]
    }
    assert seen == [one]


def test_one_request_on_the_device_is_not_copied(harness):
    tensor = away("a", 1, 2)
    [found] = gather_on_device(HERE, batch(harness, [tensor]), gather)
    assert found.data.data_ptr() == tensor.data.data_ptr()


def test_device_inputs_are_concatenated_there_and_others_on_the_host(harness):
    both = batch(harness, [away("a", 1, 2), here("b", 5, 6)], [away("a", 3), here("b", 7)])
    found = gather_on_device(HERE, both, gather)
    assert values(found) == {"a": [1, 2, 3], "b": [5, 6, 7]}
    assert isinstance(found[0].data, torch.Tensor)
    assert isinstance(found[1].data, np.ndarray)


@pytest.mark.parametrize("order", [1, -1])
def test_a_mixed_input_is_copied_to_the_host(harness, order):
    mixed = batch(harness, *[[away("a", 1)], [here("a", 2)]][::order])
    assert values(gather_on_device(HERE, mixed, gather)) == {"a": [1, 2][::order]}


def test_batches_with_empty_slots_are_copied_to_the_host(harness):
    one = batch(harness, [away("a", 1)])
    one.slots = [None, one.requests[0]]
    assert values(gather_on_device(HERE, one, gather)) == {"a": [0, 1]}
