"""Fixtures for requests and schedulers in simulated time."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy import CallbackSink, InferRequest, Tensor
from tritonpy.scheduling import SchedulerContext
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_dynamic.scheduler import DynamicScheduler
from tritonpy_protos.model_config_pb2 import ModelConfig


@pytest.fixture
def config():
    """Return a function that parses a `ModelConfig` from text."""
    return lambda text: text_format.Parse(text, ModelConfig())


@pytest.fixture
def responses():
    """Collect the responses of this test's requests as (request, response)."""
    return []


@pytest.fixture
def request_of(responses):
    """Return a function that makes a request with `rows` rows, queued at `at` ns."""
    sink = CallbackSink(lambda request, response: responses.append((request, response)))

    def make(name="", rows=1, at=0, shape=(4,), **fields):
        inputs = {"IN": Tensor("IN", "FP32", (rows, *shape), np.zeros((rows, *shape), np.float32))}
        return InferRequest("m", inputs, sink, id=name, batch_size=rows, queued_ns=at, **fields)

    return make


@pytest.fixture
def scheduler_of(config):
    """Return a function that makes a `DynamicScheduler` from configuration text."""

    def make(text, policies=None):
        parsed = config(text)
        known = {"preferred": PreferredPolicy, **(policies or {})}
        context = SchedulerContext(
            "m", 1, parsed, None, lambda name: known[name](parsed), lambda: None
        )
        return DynamicScheduler(context)

    return make
