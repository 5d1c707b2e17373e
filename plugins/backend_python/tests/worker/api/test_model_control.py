from __future__ import annotations

import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.model_control import is_model_ready, load_model, unload_model

PREFIX = "Failed to process the request for model 'm_0_0', message: "
REFUSED = TritonModelException("Server not ready")


def refusal(function, *arguments, **named):
    with pytest.raises(TritonModelException) as caught:
        function(*arguments, **named)
    return str(caught.value)


def test_a_model_is_loaded(host):
    load_model("other")
    load_model(
        model_name="other",
        config='{"max_batch_size": 8}',
        files={"file:1/model.onnx": b"\0\1", "file:a": b""},
    )
    assert host.queries == [
        ("load_model", {"name": "other", "config": "", "files": {}}),
        ("load_model", {
            "name": "other", "config": '{"max_batch_size": 8}', "files": {"file:1/model.onnx": "AAE=", "file:a": ""},
        }),
    ]  # fmt: skip


def test_a_model_is_unloaded(host):
    unload_model("other")
    unload_model("other", unload_dependents=True)
    assert host.queries == [
        ("unload_model", {"name": "other", "unload_dependents": False}),
        ("unload_model", {"name": "other", "unload_dependents": True}),
    ]


@pytest.mark.parametrize(
    ("version", "expected"), [("", -1), ("3", 3), ("0", 0), (" 7", 7), ("+2", 2), ("12abc", 12)]
)
def test_readiness_is_queried(host, version, expected):
    host.answers["is_model_ready"] = True
    assert is_model_ready("other", model_version=version) is True
    assert host.queries == [("is_model_ready", {"name": "other", "version": expected})]
    host.answers["is_model_ready"] = False
    assert is_model_ready("other") is False


@pytest.mark.parametrize(
    ("version", "detail"),
    [
        ("abc", " (details: stol)"),
        ("-1", ""),
        ("-", " (details: stol)"),
        ("9" * 30, " (details: stol)"),
    ],
)
def test_a_version_is_a_number(host, version, detail):
    assert refusal(is_model_ready, "other", version) == (
        f"Failed to check model readiness: {PREFIX}failed to get model version from specified version string "
        f"'{version}'{detail}, version should be an integral value > 0"
    )
    assert host.queries == []


def test_errors_of_the_server_are_raised(host):
    host.answers = dict.fromkeys(("load_model", "unload_model", "is_model_ready"), REFUSED)
    assert refusal(load_model, "other") == f"Failed to load model: {PREFIX}Server not ready"
    assert refusal(unload_model, "other") == f"Failed to unload model: {PREFIX}Server not ready"
    assert (
        refusal(is_model_ready, "other")
        == f"Failed to check model readiness: {PREFIX}Server not ready"
    )


@pytest.mark.parametrize(
    ("function", "arguments", "signature"),
    [
        (load_model, (5,), "(model_name: str, config: str = '', files: object = None) -> None"),
        (
            load_model,
            ("other", {}),
            "(model_name: str, config: str = '', files: object = None) -> None",
        ),
        (unload_model, (None,), "(model_name: str, unload_dependents: bool = False) -> None"),
        (
            unload_model,
            ("other", "yes"),
            "(model_name: str, unload_dependents: bool = False) -> None",
        ),
        (is_model_ready, (5,), "(model_name: str, model_version: str = '') -> bool"),
        (is_model_ready, ("other", 1), "(model_name: str, model_version: str = '') -> bool"),
    ],
)
def test_wrong_argument_types_have_tritons_error(host, function, arguments, signature):
    with pytest.raises(TypeError) as caught:
        function(*arguments)
    assert str(caught.value).startswith(
        f"{function.__name__}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. {signature}\n\nInvoked with: "
    )
    assert host.queries == []


def test_files_are_bytes_by_path(host):
    for files in ([1], "x", 5):
        assert refusal(load_model, "other", files=files) == (
            "failed to load model 'other', files should be a dictionary of file paths and file contents"
        )
    for content, kind in (("text", "str"), (5, "int"), (bytearray(b"x"), "bytearray")):
        with pytest.raises(
            TypeError, match=f"^Object of type '{kind}' is not an instance of 'bytes'$"
        ):
            load_model("other", files={"file:a": content})
    with pytest.raises(RuntimeError, match=r"^Unable to cast Python instance to C"):
        load_model("other", files={1: b"x"})
    assert host.queries == []
