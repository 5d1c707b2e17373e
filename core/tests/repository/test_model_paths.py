"""Which files a configuration of a served model may name."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.server.server import Server
from tritonpy_config.model_files import resolve_model_file
from tritonpy_testing import ModelRepository, RecordingSink
from tritonpy_types.errors import TritonError

from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins

TENSORS = {
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
}
CONFIG = {"backend": "reader", **TENSORS}
TEXT = (
    'backend: "reader" input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)  # fmt: skip


class Reader(Backend):
    """Returns the number in its file."""

    default_filenames = ("number",)
    path_parameters: ClassVar[tuple[str, ...]] = ("LIBRARY",)
    opened: ClassVar[list[Path]] = []

    @classmethod
    def auto_complete(cls, model: ModelContext) -> object:
        cls._read(model)
        return model.config

    @classmethod
    def _read(cls, model: ModelContext) -> int:
        path = resolve_model_file(model.config.default_model_filename, model.path, model.directory)
        cls.opened.append(path)
        return int(path.read_text())

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._number = self._read(model)

    def infer(self, inputs):
        return {"OUT": np.full_like(inputs["IN"], self._number)}


Serve = Callable[[], AbstractContextManager[Server]]


@pytest.fixture
def serve(model_repository: ModelRepository) -> Serve:
    Reader.opened.clear()
    for name, number in (("m", "1"), ("secret", "2")):
        model_repository.add(name, TEXT, versions={1: {"number": number, "other": "3"}})
    return lambda: serving(
        model_repository, toy_plugins(ToyPlugin({"reader": Reader})), control={"mode": "explicit"}
    )


def response(server: Server, recorder: RecordingSink) -> int:
    (responses,) = recorder.wait(ask(server.engine, recorder, "m", [0]))
    return int(numbers(responses)[0][0])


def load(server: Server, files: dict[str, bytes] | None = None, **more: object) -> None:
    server.engine.load_model("m", json.dumps({**CONFIG, **more}), files)


def failure(server: Server, files: dict[str, bytes] | None = None, **more: object) -> str:
    with pytest.raises(TritonError) as failed:
        load(server, files, **more)
    return failed.value.message


def test_another_model_s_file_is_never_opened(
    serve: Serve, recorder: RecordingSink, model_repository: ModelRepository
):
    with serve() as server:
        text = failure(server, default_model_filename="../../secret/1/number")
        assert (
            "default_model_filename: '../../secret/1/number' is outside the model's folder" in text
        )
        assert Reader.opened == []
        load(server, default_model_filename="other")
        assert response(server, recorder) == 3


def test_an_operators_configuration_cannot_leave_the_folder(
    serve: Serve, model_repository: ModelRepository
):
    model_repository.add("m", f'{TEXT} default_model_filename: "../../secret/1/number"')
    with serve() as server:
        with pytest.raises(TritonError, match=r"line 1, column .*is outside the model's folder"):
            server.engine.load_model("m")
        assert Reader.opened == []


def test_a_linked_version_folder_serves(
    serve: Serve, recorder: RecordingSink, model_repository: ModelRepository
):
    (model_repository.path / "m" / "1").rename(model_repository.path.parent / "storage")
    (model_repository.path / "m" / "1").symlink_to(model_repository.path.parent / "storage")
    with serve() as server:
        load(server, default_model_filename="other")
        assert response(server, recorder) == 3
        assert "No such file" in failure(server, default_model_filename="../number")


LIBRARY = {"LIBRARY": {"string_value": "/opt/x.so"}}
NAMED = 'parameters { key: "LIBRARY" value { string_value: "/opt/x.so" } }'


def test_a_load_request_names_no_file_of_the_server(serve: Serve):
    with serve() as server:
        assert "parameters[\"LIBRARY\"]: '/opt/x.so' leads out of the model's folder" in failure(
            server, parameters=LIBRARY
        )
        load(server, parameters={"LIBRARY": {"string_value": "$$TRITON_MODEL_DIRECTORY/x.so"}})


def test_a_load_request_may_repeat_what_the_model_s_own_configuration_names(
    serve: Serve, model_repository: ModelRepository
):
    model_repository.add("m", f"{TEXT} {NAMED}")
    with serve() as server:
        server.engine.load_model("m")
        load(server, parameters=LIBRARY)


def test_a_configuration_among_the_files_of_a_load_request_is_not_the_model_s_own(serve: Serve):
    files = {"file:config.pbtxt": f"{TEXT} {NAMED}".encode(), "file:1/number": b"4"}
    with serve() as server:
        assert "leads out of the model's folder" in failure(server, files, parameters=LIBRARY)
