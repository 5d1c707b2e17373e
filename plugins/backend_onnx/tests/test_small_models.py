from __future__ import annotations

import gc

import pytest

from tritonpy_backend_onnx import sessions
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import CPU
from tritonpy_backend_onnx.sessions import open_session
from tritonpy_backend_onnx.small_models import LEAST_THREADS, SMALL_BYTES, SmallModelThreads


class Session:
    """Stands for a session of ONNX Runtime."""


@pytest.fixture
def few(monkeypatch):
    """Room for the threads of two sessions."""
    counter = SmallModelThreads(cores=2)
    monkeypatch.setattr(sessions, "small_model_threads", counter)
    return counter


def test_sessions_have_threads_up_to_the_bound_and_again_when_one_is_gone(caplog):
    caplog.set_level("INFO")
    counter = SmallModelThreads(cores=3)
    held = Session()
    assert counter.take(5)
    counter.bind(held)
    assert counter.take(5)
    assert [counter.take(5) for _ in range(3)] == [False] * 3
    assert caplog.text.count("keeps 4 threads for models of less than 1 MiB") == 1
    del held
    gc.collect()
    assert counter.take(5)


@pytest.mark.parametrize(("cores", "sessions"), [(1, 1000), (2, LEAST_THREADS), (17, 16), (65, 16)])
def test_by_default_there_are_some_hundred_threads_or_those_of_sixteen_sessions(cores, sessions):
    counter = SmallModelThreads(cores=cores)
    assert sum(counter.take(None) for _ in range(1000)) == sessions


def options_of(models, context, options=None, weight=10, **parameters):
    opened = open_session(context("", options, **parameters), [(CPU, {})], (), weight)
    return opened, opened.session.get_session_options()


def test_a_small_model_beyond_the_bound_computes_on_the_calling_thread(models, context, few):
    models.add_sub()
    options = OnnxOptions(small_model_threads=2)
    opened = [options_of(models, context, options) for _ in range(4)]
    assert [found.intra_op_num_threads for _, found in opened] == [0, 0, 1, 1]


def test_one_that_is_large_or_says_how_many_threads_it_has_is_not_concerned(models, context, few):
    models.add_sub()
    options = OnnxOptions(small_model_threads=0)
    assert options_of(models, context, options, SMALL_BYTES)[1].intra_op_num_threads == 0
    assert options_of(models, context, options, intra_op_thread_count="3")[1].intra_op_num_threads == 3
    assert options_of(models, context, options)[1].intra_op_num_threads == 1


def test_a_session_that_cannot_be_opened_holds_no_threads(models, context, few):
    options = OnnxOptions(small_model_threads=1)
    models.add_sub().write_bytes(b"not a model")
    for _ in range(3):
        with pytest.raises(Exception, match="onnx runtime error"):
            options_of(models, context, options)
    models.add_sub()
    assert options_of(models, context, options)[1].intra_op_num_threads == 0
