from __future__ import annotations

import gc

import pytest

from tritonpy_backend_onnx import shared_model
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import CPU
from tritonpy_backend_onnx.shared_model import open_session
from tritonpy_backend_onnx.small_models import MIN_THREADS, SMALL_MODEL_BYTES, SmallModelThreads


class Session:
    """Stands in for a session of ONNX Runtime."""


@pytest.fixture
def few(monkeypatch):
    """A limit that allows the threads of two sessions."""
    counter = SmallModelThreads(cores=2)
    monkeypatch.setattr(shared_model, "small_model_threads", counter)
    return counter


def test_sessions_have_threads_up_to_the_limit_and_free_them_when_collected(caplog):
    caplog.set_level("INFO")
    counter = SmallModelThreads(cores=3)
    held = Session()
    assert counter.reserve(5)
    counter.bind(held)
    assert counter.reserve(5)
    assert [counter.reserve(5) for _ in range(3)] == [False] * 3
    assert caplog.text.count("keeps 4 threads for models of less than 1 MiB") == 1
    del held
    gc.collect()
    assert counter.reserve(5)


@pytest.mark.parametrize(("cores", "sessions"), [(1, 1000), (2, MIN_THREADS), (17, 16), (65, 16)])
def test_the_default_limit_is_256_threads_or_those_of_16_sessions(cores, sessions):
    counter = SmallModelThreads(cores=cores)
    assert sum(counter.reserve(None) for _ in range(1000)) == sessions


def options_of(models, context, options=None, model_bytes=10, **parameters):
    opened = open_session(context("", options, **parameters), [(CPU, {})], (), model_bytes)
    return opened, opened.session.get_session_options()


def test_a_small_model_beyond_the_limit_computes_on_the_calling_thread(models, context, few):
    models.add_sub()
    options = OnnxOptions(small_model_threads=2)
    opened = [options_of(models, context, options) for _ in range(4)]
    assert [found.intra_op_num_threads for _, found in opened] == [0, 0, 1, 1]


def test_large_models_and_configured_thread_counts_are_not_limited(models, context, few):
    models.add_sub()
    options = OnnxOptions(small_model_threads=0)
    assert options_of(models, context, options, SMALL_MODEL_BYTES)[1].intra_op_num_threads == 0
    assert (
        options_of(models, context, options, intra_op_thread_count="3")[1].intra_op_num_threads == 3
    )
    assert options_of(models, context, options)[1].intra_op_num_threads == 1


def test_a_session_that_cannot_be_opened_holds_no_threads(models, context, few):
    options = OnnxOptions(small_model_threads=1)
    models.add_sub().write_bytes(b"not a model")
    for _ in range(3):
        with pytest.raises(Exception, match="onnx runtime error"):
            options_of(models, context, options)
    models.add_sub()
    assert options_of(models, context, options)[1].intra_op_num_threads == 0
