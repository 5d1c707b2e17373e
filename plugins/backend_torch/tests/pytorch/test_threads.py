from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tritonpy_backend_torch.pytorch import threads
from tritonpy_backend_torch.pytorch.threads import set_thread_counts
from tritonpy_backend_torch.settings import model_settings

LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"))


def count(cores=0, default=0, **parameters):
    set_thread_counts(
        model_settings({key: str(value) for key, value in parameters.items()}),
        cores,
        "m",
        LOG,
        default,
    )
    return torch.get_num_threads()


def test_each_instance_has_its_configured_threads():
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        assert one.submit(count, INTRA_OP_THREAD_COUNT=3).result() == 3
        assert other.submit(count, INTRA_OP_THREAD_COUNT=2).result() == 2
        assert one.submit(torch.get_num_threads).result() == 3


def test_the_default_threads_are_the_cores_or_torchs():
    with ThreadPoolExecutor(1) as one:
        assert one.submit(count, cores=4).result() == 4
        assert one.submit(count, cores=4, default=1).result() == 4
        assert one.submit(count, default=1).result() == 1
        assert one.submit(count).result() == threads._default_threads
        assert one.submit(count, cores=4, INTRA_OP_THREAD_COUNT=2).result() == 2


@pytest.fixture
def pool(monkeypatch):
    """PyTorch's inter-operator pool before its first use: it can be sized once."""
    sizes = []

    def set_size(size):
        if sizes:
            raise RuntimeError(
                "cannot set number of interop threads after parallel work has started"
            )
        sizes.append(size)

    monkeypatch.setattr(threads, "_interop_threads", 0)
    monkeypatch.setattr(torch, "set_num_interop_threads", set_size)
    monkeypatch.setattr(torch, "get_num_interop_threads", lambda: sizes[0] if sizes else 8)
    return sizes


def test_the_first_model_sizes_the_interop_pool_and_others_are_warned(pool, caplog):
    for wanted in (3, 3):
        count(INTER_OP_THREAD_COUNT=wanted)
    assert (pool, caplog.records) == ([3], [])
    count(NUM_INTEROP_THREADS=2)
    assert pool == [3]
    assert "model 'm' sets 2 inter-operator threads, but the process has 3" in caplog.text


def test_an_interop_pool_in_use_keeps_its_size_and_is_logged(pool, caplog):
    pool.append(8)
    count(INTER_OP_THREAD_COUNT=2)
    assert "model 'm' sets 2 inter-operator threads, but the process has 8" in caplog.text
