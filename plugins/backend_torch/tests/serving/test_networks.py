from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from tritonpy import Internal
from tritonpy.testing import model_config
from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.model_files import model_files
from tritonpy_backend_torch.serving import networks
from tritonpy_backend_torch.serving.networks import Networks
from tritonpy_backend_torch.settings import torch_settings

from ..making import LINEAR, Linear

CPU = torch.device("cpu")


@pytest.fixture(params=["script"])
def make(models, request):
    {"script": lambda: models.script(Linear()), "export": models.linear_export}[request.param]()

    def of(**parameters):
        model = SimpleNamespace(
            name="m", config=model_config(LINEAR), log=logging.LoggerAdapter(logging.getLogger("tritonpy.backend"))
        )
        return Networks(model, model_files(models.folder, "", "", "m"), torch_settings(parameters))

    return of


def test_each_instance_gets_a_network_of_its_own(make):
    found = make()
    assert found.acquire(CPU) is not found.acquire(CPU)
    assert found.memory() == []


def test_instances_that_come_at_once_share_one(make):
    found = make(ENABLE_WEIGHT_SHARING="true")
    with ThreadPoolExecutor(4) as pool:
        first, *others = [each.result() for each in [pool.submit(found.acquire, CPU) for _ in range(8)]]
    assert all(each is first for each in others)
    assert [(usage.type, usage.byte_size) for usage in found.memory()] == [("CPU", 4 * (3 * 2 + 2))]
    found.close()
    assert found.memory() == []


@pytest.mark.parametrize("make", ["script", "export"], indirect=True)
def test_instances_that_come_at_once_each_get_theirs(make):
    found = make()
    with ThreadPoolExecutor(4) as pool:
        networks_of = [each.result() for each in [pool.submit(found.acquire, CPU) for _ in range(8)]]
    assert len(set(map(id, networks_of))) == 8


@pytest.mark.parametrize("sharing", ["true", "false"])
def test_what_was_opened_to_be_described_serves_the_first_instance(make, sharing):
    found = make(ENABLE_WEIGHT_SHARING=sharing)
    described = found.describe(CPU)
    assert found.acquire(CPU) is described
    assert (found.acquire(CPU) is described) == (sharing == "true")


def test_what_torch_raises_is_worded_as_in_triton(make, monkeypatch):
    def fail(opening):
        raise RuntimeError(f"no operator on {opening.device}")

    monkeypatch.setitem(networks._OPENERS, Form.TORCHSCRIPT, fail)
    for sharing in ("true", "false"):
        with pytest.raises(Internal) as refused:
            make(ENABLE_WEIGHT_SHARING=sharing).acquire(CPU)
        assert refused.value.message == "failed to load model 'm': no operator on cpu"
