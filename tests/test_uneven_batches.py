"""Batches of unequal requests: ragged, variable shapes, reshape, optional inputs, shape tensors.

Every model holds its first requests until all of them wait, so that they can run together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from tests import uneven_models as shapes
from tests.conftest import Models, Serve, ServerProcess

HELD = 4
PLACES = {
    "thread": "",
    "process": 'parameters { key: "isolation" value { string_value: "process" } }',
}
RANKS = {"BATCH_ITEM_SHAPE": 2}
KINDS = (
    "BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN",
)  # fmt: skip
RESHAPES = {
    "scalar": ("1", "", ["batch"]),
    "flat": ("2, 2", "4", ["batch", 4]),
    "variable": ("-1, 2", "1, -1, 2", ["batch", 1, "n", 2]),
}
PROTOCOLS = ("http", "grpc")
Arrays = Mapping[str, np.ndarray]
Client = Callable[[str, Arrays], Arrays]


def all_models() -> Iterator[tuple[str, bytes | None, str]]:
    """Name, ONNX file and configuration of each model."""
    for place, more in PLACES.items():
        yield f"scattered_{place}", shapes.doubled_flat(), shapes.DOUBLED_FLAT + more
        for kind in KINDS:
            yield (
                f"{kind.lower()}_{place}",
                shapes.batch_seen(RANKS.get(kind, 1)),
                shapes.batch_seen_config(kind, more),
            )
        yield f"maybe_{place}", None, shapes.MAYBE + more
        yield f"shaped_{place}", None, shapes.SHAPED + more
    for name, (given, inside, dims) in RESHAPES.items():
        yield f"reshaped_{name}", shapes.identity(*dims), shapes.reshape_config(given, inside)
    yield "variable", shapes.identity("batch", "n"), shapes.VARIABLE
    yield "with_default", shapes.with_default(), shapes.WITH_DEFAULT


@pytest.fixture(scope="module")
def held(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one copy of each model for every protocol."""
    models = Models(tmp_path_factory.mktemp("uneven") / "models")
    for (name, file, config), protocol in itertools.product(all_models(), PROTOCOLS):
        models.repository.add(
            f"{name}_{protocol}", config, {1: {} if file is None else {"model.onnx": file}}
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITONSERVER_DELAY_SCHEDULER", str(HELD))
        with serve(f"--model-repository={models.path}") as served:
            yield served


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def infer(held: ServerProcess, protocol: str) -> Iterator[Client]:
    """Send a request over the protocol; can be used by several threads."""
    module = getattr(tritonclient, protocol)
    more = {"concurrency": HELD} if protocol == "http" else {}
    with module.InferenceServerClient(getattr(held, protocol), **more) as client:

        def infer(model: str, arrays: Arrays) -> Arrays:
            inputs = [
                module.InferInput(name, array.shape, _datatype(array))
                for name, array in arrays.items()
            ]
            for each, array in zip(inputs, arrays.values(), strict=True):
                each.set_data_from_numpy(array)
            answer = client.infer(f"{model}_{protocol}", inputs)
            return _arrays(answer.get_response())(answer)

        yield infer


def _datatype(array: np.ndarray) -> str:
    return {"float32": "FP32", "int32": "INT32"}[str(array.dtype)]


def _arrays(response: Any) -> Callable[[Any], Arrays]:
    outputs = response["outputs"] if isinstance(response, dict) else response.outputs
    names = [each["name"] if isinstance(each, dict) else each.name for each in outputs]
    return lambda answer: {name: answer.as_numpy(name) for name in names}


def together(infer: Client, model: str, requests: Sequence[Arrays]) -> list[Arrays]:
    """Send all requests at the same time."""
    assert len(requests) == HELD
    with ThreadPoolExecutor(HELD) as pool:
        return list(pool.map(lambda arrays: infer(model, arrays), requests))


def executions(served: ServerProcess, model: str) -> int:
    (statistics,) = served.request(f"/v2/models/{model}/stats").json()["model_stats"]
    assert statistics["inference_stats"]["success"]["count"] == HELD
    return int(statistics["execution_count"])


def filled(*shape: int) -> np.ndarray:
    """Return an array whose elements are its own size."""
    return np.full(shape, np.prod(shape), np.float32)


def expected(kind: str, requests: Sequence[tuple[int, ...]]) -> list[float]:
    """Return the batch input for requests of these shapes, in order."""
    counts = [int(np.prod(shape)) for shape in requests]
    sums = list(itertools.accumulate(counts))
    items = [size for rows, *sizes in requests for _ in range(rows) for size in sizes]
    values: dict[str, list[int]] = {
        "BATCH_ELEMENT_COUNT": counts,
        "BATCH_ACCUMULATED_ELEMENT_COUNT": sums,
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": [0, *sums],
        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": [0] * max(counts),
        "BATCH_ITEM_SHAPE": items,
        "BATCH_ITEM_SHAPE_FLATTEN": items,
    }
    return [float(value) for value in values[kind]]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_ragged_requests_are_batched_and_batch_inputs_describe_them(
    held: ServerProcess, infer: Client, protocol: str, kind: str, place: str
) -> None:
    requests = {6: (1, 3, 2), 1: (1, 1, 1), 4: (1, 2, 2), 5: (1, 5, 1)}
    model = f"{kind.lower()}_{place}"
    responses = together(infer, model, [{"RAGGED": filled(*shape)} for shape in requests.values()])
    order = responses[0]["ORDER"][0].astype(int).tolist()
    assert sorted(order) == sorted(requests)
    flat = [float(count) for count in order for _ in range(count)]
    made = expected(kind, [requests[count] for count in order])
    for answer in responses:
        assert answer["ORDER"].tolist() == [order]
        assert answer["ALL"].tolist() == [flat]
        assert answer["MADE"].tolist() == [made]
    assert executions(held, f"{model}_{protocol}") == 1


@pytest.mark.parametrize("place", PLACES)
def test_outputs_of_ragged_batches_have_the_shapes_of_the_inputs(
    held: ServerProcess, infer: Client, protocol: str, place: str
) -> None:
    requests = [filled(1, 2), filled(1, 4), filled(2, 1), filled(1, 3)]
    responses = together(infer, f"scattered_{place}", [{"IN": array} for array in requests])
    for array, answer in zip(requests, responses, strict=True):
        assert answer["OUT"].tolist() == (array * 2).tolist()
    assert executions(held, f"scattered_{place}_{protocol}") == 1


def test_only_requests_of_one_shape_share_a_batch(
    held: ServerProcess, infer: Client, protocol: str
) -> None:
    requests = [filled(1, 2), filled(1, 3), filled(2, 2), filled(1, 3)]
    responses = together(infer, "variable", [{"IN": array} for array in requests])
    for array, answer in zip(requests, responses, strict=True):
        assert answer["OUT"].tolist() == array.tolist()
    assert 2 <= executions(held, f"variable_{protocol}") <= HELD


@pytest.mark.parametrize("shape", RESHAPES)
def test_clients_and_model_see_different_shapes(
    held: ServerProcess, infer: Client, protocol: str, shape: str
) -> None:
    sizes = {"scalar": (1,), "flat": (2, 2), "variable": (3, 2)}[shape]
    requests = [
        np.random.default_rng(row).random((1 + row % 2, *sizes), np.float32) for row in range(HELD)
    ]
    responses = together(infer, f"reshaped_{shape}", [{"IN": array} for array in requests])
    for array, answer in zip(requests, responses, strict=True):
        assert answer["OUT"].tolist() == array.tolist()
    assert executions(held, f"reshaped_{shape}_{protocol}") == 1


def test_an_optional_input_of_an_onnx_model_may_be_absent(infer: Client) -> None:
    one, two = np.array([1, 2], np.float32), np.array([5, 5], np.float32)
    assert infer("with_default", {"IN": one})["OUT"].tolist() == [11, 12]
    assert infer("with_default", {"IN": one, "BIAS": two})["OUT"].tolist() == [6, 7]


@pytest.mark.parametrize("place", PLACES)
def test_requests_with_different_optional_inputs_are_not_batched_together(
    held: ServerProcess, infer: Client, protocol: str, place: str
) -> None:
    one = np.array([[1]], np.float32)
    requests: list[Arrays] = [{"A": one}, {"B": one * 2}, {"A": one, "B": one * 2}, {"A": one * 4}]
    responses = together(infer, f"maybe_{place}", requests)
    assert [answer["SUM"].tolist() for answer in responses] == [[[1]], [[2]], [[3]], [[4]]]
    seen = [bytes(answer["SEEN"][0, 0]).decode().partition(" in ")[0] for answer in responses]
    assert seen == ["A", "B", "A B", "A"]
    assert 3 <= executions(held, f"maybe_{place}_{protocol}") <= HELD


@pytest.mark.parametrize("place", PLACES)
def test_only_requests_with_equal_shape_tensors_share_a_batch(
    held: ServerProcess, infer: Client, protocol: str, place: str
) -> None:
    requests: list[Arrays] = [
        {"A": np.full((rows, 1), rows, np.float32), "B": np.array([size], np.float32)}
        for rows, size in ((1, 10), (2, 10), (1, 20), (2, 20))
    ]
    responses = together(infer, f"shaped_{place}", requests)
    assert [answer["SUM"].ravel().tolist() for answer in responses] == [
        [11],
        [12, 12],
        [21],
        [22, 22],
    ]
    assert {
        bytes(text).decode().partition(" in ")[0]
        for answer in responses
        for text in answer["SEEN"].ravel()
    } == {"A B"}
    assert 2 <= executions(held, f"shaped_{place}_{protocol}") <= HELD
