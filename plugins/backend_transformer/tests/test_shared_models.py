from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy import InstanceContext, InvalidArgument, MemoryUsage
from tritonpy_backend_transformer import shared_models
from tritonpy_backend_transformer.devices import DeviceSet
from tritonpy_backend_transformer.shared_models import (
    SharedModels,
    devices,
    instances_on,
    threads_for,
)
from tritonpy_testing import model_config


@pytest.fixture
def made(decoder):
    def make(text="", **parameters):
        config = model_config(f'name: "m" {text}')
        return SharedModels(
            SimpleNamespace(name="m", path=decoder[0], config=config, parameters=parameters)
        ), config

    return make


def instance(kind="CPU", device=0, cores=()):
    return InstanceContext("m_0", kind, device, 0, cores=cores)


def test_instances_of_a_device_share_the_weights(made):
    shared, config = made("instance_group { kind: KIND_CPU count: 3 }")
    first = shared.acquire(instance(), config)
    assert shared.acquire(instance(), config) is first
    assert first.num_generators == 6
    assert shared.acquire(instance(cores=(0,)), config) is not first


def test_memory_usage_is_the_size_of_the_weights(made):
    shared, config = made(precision="int8")
    assert shared.memory_usage() == []
    shared.acquire(instance(), config)
    [int8_usage] = shared.memory_usage()
    full_precision, config = made()
    full_precision.acquire(instance(), config)
    [usage] = full_precision.memory_usage()
    assert isinstance(usage, MemoryUsage)
    assert (usage.type, usage.id) == ("CPU", 0)
    assert 0.25 * usage.byte_size < int8_usage.byte_size < 0.5 * usage.byte_size
    full_precision.close()
    assert full_precision.memory_usage() == []


def test_instances_are_counted_per_gpu():
    config = model_config(
        'name: "m" instance_group [{ kind: KIND_GPU gpus: [0, 1] count: 2 }, { kind: KIND_GPU gpus: 1 count: 1 }, { kind: KIND_CPU count: 5 }]'
    )
    counts = [
        instances_on(config, each)
        for each in (instance("GPU", 0), instance("GPU", 1), instance(), instance("MODEL"))
    ]
    assert counts == [2, 3, 5, 1]


def test_cores_are_divided_among_the_instances(monkeypatch):
    monkeypatch.setattr(shared_models.os, "sched_getaffinity", lambda _process: set(range(8)))
    assert [threads_for(count, ()) for count in (1, 2, 16)] == [8, 4, 1]
    assert threads_for(1, (2, 3)) == 2


def test_an_instance_uses_the_devices_of_its_group(monkeypatch, made):
    opened = []
    monkeypatch.setattr(
        shared_models,
        "open_model",
        lambda _folder, _settings, place, *counts: opened.append((place, counts)),
    )
    monkeypatch.setattr(
        shared_models, "runtime", lambda: SimpleNamespace(get_cuda_device_count=lambda: 2)
    )
    shared, config = made(intra_op_thread_count="3", inter_op_thread_count="4")
    for each in (instance("GPU", 1), instance("MODEL"), instance()):
        shared.acquire(each, config)
    assert opened == [
        (DeviceSet("cuda", (1,)), (4, 3)),
        (DeviceSet("cuda", (0, 1)), (4, 3)),
        (DeviceSet("cpu", (0,)), (4, 3)),
    ]


def test_devices_can_be_named():
    assert devices("2,0", 4) == DeviceSet("cuda", (2, 0))
    assert devices("", 0) == DeviceSet("cpu", (0,))
    for given in ("one", "0,0", "-1", ","):
        with pytest.raises(
            InvalidArgument, match="'GPU_DEVICE_IDS' must be different GPU numbers such as 0,1"
        ):
            devices(given, 4)
