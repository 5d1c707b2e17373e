from __future__ import annotations

import errno
import os
import re
import shutil
from typing import ClassVar

import pytest

import tritonpy_agent_sealed
from tritonpy import InvalidArgument
from tritonpy.repository import AgentAction, AgentModel
from tritonpy_agent_sealed import agent as agent_module
from tritonpy_agent_sealed.agent import SealedAgent
from tritonpy_agent_sealed.keys import encryption_key, new_encryption_key, signing_key
from tritonpy_agent_sealed.manifest import Manifest, SealedFile, write_manifest
from tritonpy_agent_sealed.options import SealedOptions
from tritonpy_agent_sealed.seal import seal
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import RepoAgentContract

from .conftest import CONTENT, Keys


class TestContract(RepoAgentContract):
    plugin_class = SealedAgent
    plugin = tritonpy_agent_sealed
    name = "sealed"
    options: ClassVar = {"verify_key_variables": ["SOME_KEY"]}

    @pytest.fixture(autouse=True)
    def _keys(self, keys, source):
        self.keys, self.source = keys, source

    def make_options(self):
        return self.keys.options()

    def write_model(self, folder):
        folder.rmdir()
        key = encryption_key(self.keys.at("encryption.key"))
        seal(self.source, folder, signing_key(self.keys.at("signing.pem")), key)


@pytest.fixture
def load(keys, sealed, tmp_path):
    (tmp_path / "opened").mkdir()

    def act(name="m", options=None):
        agent = SealedAgent(options or keys.options(directory=tmp_path / "opened"))
        try:
            return agent, agent.act(AgentAction.LOAD, AgentModel(name, sealed, {}, ModelConfig()))
        except InvalidArgument:
            agent.act(AgentAction.LOAD_FAIL, AgentModel(name, sealed, {}, ModelConfig()))
            assert list((tmp_path / "opened").iterdir()) == []
            raise

    return act


def test_an_unsealed_model_is_the_sealed_one_and_names_the_agent(load):
    _, folder = load()
    opened = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    config = opened.pop("config.pbtxt")
    assert config.startswith(CONTENT["config.pbtxt"])
    assert b'name: "sealed"' in config
    assert opened == {name: content for name, content in CONTENT.items() if name != "config.pbtxt"}


def test_only_the_server_s_user_can_enter_the_folder_of_an_unsealed_model(load):
    _, folder = load()
    assert (folder.parent.stat().st_mode & 0o777, folder.parent.stat().st_uid) == (
        0o700,
        os.getuid(),
    )


def test_an_unloaded_model_leaves_no_files(load, sealed, tmp_path):
    agent, folder = load()
    agent.act(AgentAction.UNLOAD, AgentModel("m", folder, {}, ModelConfig()))
    assert folder.is_dir()
    agent.act(AgentAction.UNLOAD_COMPLETE, AgentModel("m", folder, {}, ModelConfig()))
    assert list((tmp_path / "opened").iterdir()) == []


def change(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


TAMPERING = {
    "a byte of a file": lambda folder: change(folder / "1" / "model.onnx"),
    "a byte of the configuration": lambda folder: change(folder / "config.pbtxt"),
    "a byte of the list": lambda folder: change(folder / "sealed.json"),
    "a byte of the signature": lambda folder: change(folder / "sealed.sig"),
    "a file that is gone": lambda folder: (folder / "labels.txt").unlink(),
    "a file too many": lambda folder: (folder / "1" / "more").write_bytes(b""),
    "a file that ends early": lambda folder: os.truncate(folder / "1" / "model.onnx", 1 << 20),
    "two files in each other's place": lambda folder: shutil.copy(
        folder / "labels.txt", folder / "1" / "deep" / "empty"
    ),
    "no signature": lambda folder: (folder / "sealed.sig").unlink(),
    "no list": lambda folder: (folder / "sealed.json").unlink(),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_a_modified_model_is_not_loaded(load, sealed, what):
    TAMPERING[what](sealed)
    with pytest.raises(InvalidArgument, match=r"^model 'm' is not loaded: "):
        load()


def test_a_model_under_another_name_is_not_loaded(load):
    with pytest.raises(InvalidArgument, match=r"was sealed as the model 'm'"):
        load("other")


def test_a_model_that_another_key_signed_is_not_loaded(load, tmp_path):
    with pytest.raises(InvalidArgument, match=r"not a signature of sealed\.json by a trusted key"):
        load(options=Keys(tmp_path / "others").options(directory=tmp_path / "opened"))


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "1/../../outside"])
def test_a_signed_list_cannot_name_files_outside_the_model(load, keys, sealed, name):
    write_manifest(
        sealed, Manifest("m", (SealedFile(name, "0"),)), signing_key(keys.at("signing.pem"))
    )
    with pytest.raises(InvalidArgument, match="names a file outside the model"):
        load()


@pytest.mark.parametrize("sealed", ["encrypted"], indirect=True)
def test_a_missing_decryption_key_is_named(load, keys, tmp_path):
    (tmp_path / "keys" / "encryption.key").write_bytes(new_encryption_key())
    with pytest.raises(
        InvalidArgument,
        match=r"encrypted with the key [0-9a-f]{16}, which is none of the server's 1",
    ):
        load()


@pytest.mark.parametrize("sealed", ["encrypted"], indirect=True)
def test_only_the_configuration_of_an_encrypted_model_is_readable(sealed):
    stored = b"".join(path.read_bytes() for path in sealed.rglob("*") if path.is_file())
    assert b'backend: "identity"' in stored
    assert CONTENT["labels.txt"] not in stored
    assert CONTENT["1/model.onnx"][:64] not in stored


def test_a_folder_that_cannot_be_written_fails_the_load(load, keys, tmp_path):
    with pytest.raises(InvalidArgument, match=r"model 'm' cannot be unsealed: .*no-such"):
        load(options=keys.options(directory=tmp_path / "no-such"))


def test_an_unreadable_key_does_not_affect_the_others(load, keys, tmp_path, caplog):
    broken = tmp_path / "broken.pem"
    broken.write_text("no key")
    options = SealedOptions(
        verify_key_files=(str(broken), keys.at("verify.pem"), str(tmp_path / "gone.pem")),
        decryption_key_files=(keys.at("encryption.key"),),
        directory=tmp_path / "opened",
    )
    load(options=options)
    assert (
        f"models that it signed are not loaded: {broken} holds no public key in PEM" in caplog.text
    )
    assert "gone.pem cannot be read: No such file" in caplog.text


def test_without_a_readable_key_all_reasons_are_reported(load, keys, tmp_path):
    options = SealedOptions(
        verify_key_files=(str(tmp_path / "gone.pem"), keys.at("encryption.key")),
        directory=tmp_path / "opened",
    )
    with pytest.raises(
        InvalidArgument,
        match=r"gone\.pem cannot be read: No such file.*; .*holds no public key in PEM",
    ):
        load(options=options)


def test_a_full_disk_is_reported(load, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(agent_module, "unseal", full)
    text = (
        f"model 'm' cannot be unsealed: No space left on device: {tmp_path / 'opened'} has no space"
    )
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        load()


def test_another_disk_error_names_the_file(load, monkeypatch, tmp_path):
    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO), "1/model.onnx")

    monkeypatch.setattr(agent_module, "unseal", broken)
    with pytest.raises(
        InvalidArgument, match=r"cannot be unsealed: Input/output error \(1/model.onnx\)$"
    ):
        load()
