from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy import Backend, InvalidArgument, ModelMemory, Options
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import BackendHarness, model_config

CONFIG = model_config(
    'name: "toy" max_batch_size: 4 input { name: "IN" data_type: TYPE_FP32 dims: 2 } parameters { key: "k" value { string_value: "v" } }'
)


class Settings(Options, frozen=True):
    factor: Annotated[float, msgspec.Meta(description="What to multiply with.")] = 2.0


class Recording(Backend):
    """A backend that records its calls."""

    Options = Settings
    calls: list[str]

    @classmethod
    def auto_complete(cls, model):
        cls.calls = ["auto_complete"]
        config = type(model.config)()
        config.CopyFrom(model.config)
        config.output.add(name="OUT", data_type=11, dims=[2])
        return config

    @classmethod
    def load(cls, model):
        cls.calls.append("load")
        return "shared"

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self.calls.append(f"start {instance.name} with {model.shared}")

    def infer(self, inputs):
        if inputs["IN"].sum() == 0:
            raise InvalidArgument("nothing to do")
        return {"OUT": inputs["IN"] * np.float32(self.model.options.factor)}

    def close(self):
        self.calls.append("close")

    @classmethod
    def unload(cls, shared):
        cls.calls.append(f"unload {shared}")


class Refusing(Recording):
    def __init__(self, model, instance):
        raise RuntimeError("not today")


def test_a_model_is_completed_loaded_and_unloaded(tmp_path):
    with BackendHarness(Recording, CONFIG, tmp_path) as harness:
        assert harness.model.path == tmp_path / "1"
        assert harness.model.output_types == {"OUT": "FP32"}
        assert harness.model.parameters == {"k": "v"}
    assert Recording.calls == [
        "auto_complete",
        "load",
        "start toy_0 with shared",
        "close",
        "unload shared",
    ]


def test_requests_run_as_one_batch(tmp_path):
    with BackendHarness(Recording, CONFIG, tmp_path, {"factor": 3}) as harness:
        requests = [
            harness.request({"IN": np.full((rows, 2), rows, np.float32)}) for rows in (1, 2)
        ]
        responses = harness.execute(*requests)
    assert [response.outputs[0].numpy().tolist() for [response] in responses] == [
        [[3, 3]],
        [[6, 6], [6, 6]],
    ]
    assert requests[0].batch is requests[1].batch


def test_an_exception_of_infer_fails_the_batch(tmp_path):
    with BackendHarness(Recording, CONFIG, tmp_path) as harness:
        [[response]] = harness.execute(harness.request({"IN": np.zeros((1, 2), np.float32)}))
    assert isinstance(response.error, InvalidArgument)
    assert response.error.message == "nothing to do"


def test_a_failed_start_unloads_shared_data(tmp_path):
    with pytest.raises(RuntimeError, match="not today"), BackendHarness(Refusing, CONFIG, tmp_path):
        pass
    assert Refusing.calls == ["auto_complete", "load", "unload shared"]


@pytest.mark.parametrize(
    ("text", "gpus", "expected"),
    [
        ("", [0, 1], ("GPU", 0, ())),
        ("instance_group { gpus: 1 profile: '2' }", [0, 1], ("GPU", 1, ("2",))),
        ("instance_group { kind: KIND_CPU }", [0, 1], ("CPU", 0, ())),
        ("", [], ("CPU", 0, ())),
    ],
)
def test_the_instance_is_the_first_configured_one(tmp_path, monkeypatch, text, gpus, expected):
    monkeypatch.setattr(Recording, "uses_gpu", True)
    config = text_format.Parse(
        f"name: 'toy' input {{ name: 'IN' data_type: TYPE_FP32 dims: 2 }} {text}", ModelConfig()
    )
    with BackendHarness(Recording, config, tmp_path, gpus=gpus) as harness:
        instance = harness.instance.instance
        assert (instance.kind, instance.device_id, instance.profiles) == expected


def test_a_model_gets_the_given_memory(tmp_path):
    memory = ModelMemory()
    with BackendHarness(Recording, CONFIG, tmp_path, memory=memory) as harness:
        assert harness.model.memory is memory


def test_requested_gpus_must_exist(tmp_path):
    config = model_config("name: 'toy' instance_group { kind: KIND_GPU }")
    with (
        pytest.raises(AssertionError, match="no instance that these GPUs allow"),
        BackendHarness(Recording, config, tmp_path),
    ):
        pass
