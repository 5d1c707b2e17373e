from __future__ import annotations

import hashlib
from typing import ClassVar

import pytest

import tritonpy_agent_checksum
from tritonpy import InvalidArgument
from tritonpy.repository import AgentAction, AgentModel
from tritonpy_agent_checksum.agent import ChecksumAgent
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import RepoAgentContract

MD5 = hashlib.new("md5", b"weights", usedforsecurity=False).hexdigest()
SHA = hashlib.sha256(b"weights").hexdigest()


class TestContract(RepoAgentContract):
    plugin_class = ChecksumAgent
    plugin = tritonpy_agent_checksum
    name = "checksum"
    parameters: ClassVar = {"MD5:1/model.onnx": MD5, "sha256:1/model.onnx": SHA.upper()}
    refused_parameters: ClassVar = {"MD5:1/model.onnx": "0" * 32}


def load(folder, parameters):
    (folder / "1").mkdir(exist_ok=True)
    (folder / "1" / "model.onnx").write_bytes(b"weights")
    return ChecksumAgent(None).act(
        AgentAction.LOAD, AgentModel("m", folder, parameters, ModelConfig())
    )


def test_a_file_that_differs_is_named_with_both_checksums(tmp_path):
    with pytest.raises(InvalidArgument) as caught:
        load(tmp_path, {"MD5:1/model.onnx": "abc"})
    assert (
        str(caught.value) == f"Mismatched MD5 hash for file 1/model.onnx, expect: abc, got: {MD5}"
    )


def test_every_file_is_checked(tmp_path):
    with pytest.raises(InvalidArgument, match="Mismatched SHA-256 hash"):
        load(tmp_path, {"MD5:1/model.onnx": MD5, "SHA-256:1/model.onnx": "0"})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        InvalidArgument,
        match=r"^failed to open text file for read no\.bin: No such file or directory$",
    ):
        load(tmp_path, {"MD5:no.bin": MD5})


@pytest.mark.parametrize("name", ["../other", "1/../../other"])
def test_files_outside_the_model_are_rejected(tmp_path, name):
    with pytest.raises(InvalidArgument, match="outside the model's folder"):
        load(tmp_path, {f"MD5:{name}": MD5})


def test_an_absolute_path_is_relative_to_the_model_s_folder(tmp_path):
    with pytest.raises(InvalidArgument, match="failed to open text file for read /etc/hostname"):
        load(tmp_path, {"MD5:/etc/hostname": MD5})


def test_a_file_may_be_a_link(tmp_path):
    (tmp_path / "kept").write_bytes(b"weights")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "link").symlink_to(tmp_path / "kept")
    assert load(tmp_path / "m", {"MD5:link": MD5}) is None


def test_files_are_checked_only_on_load(tmp_path):
    model = AgentModel("m", tmp_path, {"MD5:no.bin": MD5}, ModelConfig())
    for action in set(AgentAction) - {AgentAction.LOAD}:
        assert ChecksumAgent(None).act(action, model) is None
