from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from tritonpy import Internal
from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.model_files import model_files
from tritonpy_backend_torch.pytorch import shared_model
from tritonpy_backend_torch.pytorch.shared_model import SharedModel
from tritonpy_backend_torch.settings import model_settings
from tritonpy_testing import model_config

from ..models import LINEAR, Linear

CPU = torch.device("cpu")


@pytest.fixture(params=["script"])
def make(models, request):
    {"script": lambda: models.script(Linear()), "export": models.linear_export}[request.param]()

    def of(**parameters):
        model = SimpleNamespace(
            name="m",
            config=model_config(LINEAR),
            log=logging.LoggerAdapter(logging.getLogger("tritonpy.backend")),
        )
        return SharedModel(
            model, model_files(models.folder, "", "", "m"), model_settings(parameters)
        )

    return of


def test_each_instance_gets_a_network_of_its_own(make):
    found = make()
    assert found.acquire(CPU) is not found.acquire(CPU)
    assert found.memory_usage() == []


def test_instances_loading_concurrently_share_one_network(make):
    found = make(ENABLE_WEIGHT_SHARING="true")
    with ThreadPoolExecutor(4) as pool:
        first, *others = [
            each.result() for each in [pool.submit(found.acquire, CPU) for _ in range(8)]
        ]
    assert all(each is first for each in others)
    assert [(usage.type, usage.byte_size) for usage in found.memory_usage()] == [
        ("CPU", 4 * (3 * 2 + 2))
    ]
    found.close()
    assert found.memory_usage() == []


@pytest.mark.parametrize("make", ["script", "export"], indirect=True)
def test_instances_loading_concurrently_get_their_own_networks(make):
    found = make()
    with ThreadPoolExecutor(4) as pool:
        networks_of = [
            each.result() for each in [pool.submit(found.acquire, CPU) for _ in range(8)]
        ]
    assert len(set(map(id, networks_of))) == 8


@pytest.mark.parametrize("sharing", ["true", "false"])
def test_the_network_opened_for_the_signature_serves_the_first_instance(make, sharing):
    found = make(ENABLE_WEIGHT_SHARING=sharing)
    described = found.describe(CPU)
    assert found.acquire(CPU) is described
    assert (found.acquire(CPU) is described) == (sharing == "true")


def test_torch_errors_get_tritons_text(make, monkeypatch):
    def fail(load_spec):
        raise RuntimeError(f"no operator on {load_spec.device}")

    monkeypatch.setitem(shared_model._LOADERS, ArchiveFormat.TORCHSCRIPT, fail)
    for sharing in ("true", "false"):
        with pytest.raises(Internal) as refused:
            make(ENABLE_WEIGHT_SHARING=sharing).acquire(CPU)
        assert refused.value.message == "failed to load model 'm': no operator on cpu"
