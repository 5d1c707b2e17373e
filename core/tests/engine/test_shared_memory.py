from __future__ import annotations

import numpy as np
import pytest

from tritonpy_testing import RecordingSink, shared_object
from tritonpy_types import InferRequest, OutputSpec, RegionSlice, Tensor
from tritonpy_types.errors import (
    Cancelled,
    DecoupledRefused,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unsupported,
)

from ..toys.decoupled import Repeat
from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of, serving, toy_plugins

PAGE = 4096


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def recorder():
    return RecordingSink()


@pytest.fixture
def start(model_repository, gate):
    model_repository.add("doubler", config_of("doubler", batch=1))
    model_repository.add(
        "repeat", config_of("repeat", more="model_transaction_policy { decoupled: true }")
    )
    plugins = toy_plugins(ToyPlugin({"doubler": gated(gate), "repeat": Repeat}))
    return lambda **settings: serving(model_repository, plugins, **settings)


@pytest.fixture
def engine(start):
    with start(allow_client_shm=True) as server:
        yield server.engine


@pytest.fixture
def client(engine):
    with shared_object(PAGE, np.array([21], np.int32).tobytes()) as memory:
        engine.register_system_region("r", memory.key, 0, PAGE)
        yield memory


def request_of(
    recorder, model="doubler", offset=0, outputs=None, shape=(1, 1), region="r", **fields
):
    tensor = Tensor("IN", "INT32", shape, RegionSlice(region, offset, 4))
    return InferRequest(
        model, {"IN": tensor}, recorder.sink, outputs=outputs, uses_regions=True, **fields
    )


def place(offset=8, byte_size=4):
    return {"OUT": OutputSpec("OUT", region="r", offset=offset, byte_size=byte_size)}


def number(client, offset):
    return int(np.frombuffer(client.read(4, offset), np.int32)[0])


def test_a_model_reads_from_a_region_and_its_response_is_written_there(
    engine, client, gate, recorder
):
    gate.open()
    request = request_of(recorder, outputs=place())
    engine.infer(request)
    [[response]] = recorder.wait(request)
    assert response.outputs[0].data == RegionSlice("r", 8, 4)
    assert number(client, 8) == 42


def test_a_model_reads_the_clients_memory_itself(engine, client, gate, recorder):
    request = request_of(recorder, outputs=place())
    engine.infer(request)
    gate.wait_for(1)
    client.write(np.array([4], np.int32).tobytes())
    gate.open()
    recorder.wait(request)
    assert number(client, 8) == 8


def test_an_unregistered_region_stays_mapped_until_the_response(engine, client, gate, recorder):
    running, waiting = (request_of(recorder, outputs=place(offset)) for offset in (8, 12))
    engine.infer(running)
    gate.wait_for(1)
    engine.infer(waiting)
    engine.unregister_regions("system")
    assert [region.name for region in engine.regions("system")] == ["r"]
    gate.open(1)
    recorder.wait(running)
    assert engine.regions("system")
    gate.open(1)
    recorder.wait(waiting)
    assert engine.regions("system") == []
    assert (number(client, 8), number(client, 12)) == (42, 42)
    with pytest.raises(NotFound, match="Unable to find shared memory region: 'r'"):
        engine.infer(request_of(recorder))


def test_a_cancelled_request_releases_its_region_and_writes_nothing(engine, client, gate, recorder):
    running, waiting = (request_of(recorder, outputs=place(offset)) for offset in (8, 12))
    engine.infer(running)
    gate.wait_for(1)
    engine.infer(waiting)
    waiting.cancel()
    [[response]] = recorder.wait(waiting)
    assert isinstance(response.error, Cancelled)
    gate.open(1)
    recorder.wait(running)
    engine.unregister_regions("system")
    assert engine.regions("system") == []
    assert number(client, 12) == 0


def test_an_output_that_does_not_fit_counts_as_a_failure(engine, client, gate, recorder):
    gate.open()
    request = request_of(recorder, outputs=place(byte_size=3))
    engine.infer(request)
    [[response]] = recorder.wait(request)
    assert "(3 bytes) should be at least 4 bytes to hold the results" in response.error.message
    [counted] = engine.statistics("doubler")
    assert (counted.inference_stats.success.count, counted.inference_stats.fail.count) == (0, 1)


def test_a_refused_request_holds_no_region(engine, client, recorder):
    with pytest.raises(InvalidArgument, match="unexpected shape"):
        engine.infer(request_of(recorder, shape=(1, 2)))
    short = request_of(recorder)
    short.inputs["IN"].data = RegionSlice("r", 0, 3)
    with pytest.raises(InvalidArgument, match="input byte size mismatch"):
        engine.infer(short)
    engine.unregister_regions("system")
    assert engine.regions("system") == []


def test_errors_of_the_model_precede_errors_of_regions(engine, recorder):
    with pytest.raises(InvalidArgument, match="unknown model"):
        engine.infer(request_of(recorder, "nobody"))
    with pytest.raises(DecoupledRefused):
        engine.infer(request_of(recorder, "repeat"))
    with pytest.raises(NotFound, match="Unable to find shared memory region: 'r'"):
        engine.infer(request_of(recorder, "repeat", accepts_decoupled=True))


def test_a_refused_request_may_be_sent_again(engine, client, recorder):
    request = request_of(recorder, "repeat", 64, place(), shape=(1,))
    client.write(np.array([2], np.int32).tobytes(), 64)
    with pytest.raises(DecoupledRefused):
        engine.infer(request)
    request.accepts_decoupled = True
    engine.infer(request)
    [answers] = recorder.wait(request)
    assert [answer.final for answer in answers] == [False, False, True]
    assert [answer.outputs[0].data for answer in answers[:2]] == [RegionSlice("r", 8, 4)] * 2
    assert number(client, 8) == 1
    engine.unregister_regions("system")
    assert engine.regions("system") == []


def test_a_stopping_server_refuses_the_request(start, recorder):
    with start(allow_client_shm=True) as server:
        engine = server.engine
    with pytest.raises(Unavailable, match="Server is stopping"):
        engine.infer(request_of(recorder))


def test_nothing_is_registered_unless_it_is_allowed(start, client):
    with start() as server:
        with pytest.raises(Unsupported, match="--allow-client-shm=true"):
            server.engine.register_system_region("r", client.key, 0, PAGE)
        assert server.engine.regions("system") == []


def test_the_extensions_name_both_kinds(engine):
    extensions = engine.server_metadata().extensions
    at = extensions.index("model_configuration")
    assert extensions[at + 1 : at + 4] == [
        "system_shared_memory",
        "cuda_shared_memory",
        "binary_tensor_data",
    ]
