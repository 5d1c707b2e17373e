from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import Backend, StartupError, hookimpl
from tritonpy.config import ServerConfig
from tritonpy.plugins import install_command, make_plugin_manager
from tritonpy_config.known_backends import BackendFiles
from tritonpy_serve.command import with_chat
from tritonpy_serve.single_model import default_filename, single_model_repository

INSTALLED = [
    BackendFiles("onnxruntime", (), ("model.onnx",)),
    BackendFiles("toy", (), ("model.toy", "other.onnx")),
]


class ToyBackend(Backend):
    default_filenames = ("model.toy",)


class Toys:
    @hookimpl
    def tritonpy_backends(self):
        return {"toy": ToyBackend}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Toys(), "toys")
    return manager


def test_the_suffix_chooses_the_file_name(tmp_path):
    assert default_filename(tmp_path / "resnet.v2.onnx", INSTALLED) == "model.onnx"
    assert default_filename(tmp_path / "a.toy", INSTALLED) == "model.toy"


def test_an_unknown_suffix_is_reported_with_the_known_ones_and_the_package(tmp_path):
    with pytest.raises(StartupError) as caught:
        default_filename(tmp_path / "a.pt", INSTALLED)
    text = str(caught.value)
    assert "supported suffixes: .onnx (onnxruntime), .toy (toy)" in text
    assert text.endswith(install_command("tritonpy-backend-torch"))


@pytest.mark.parametrize("name", ["a.docx", "noending"])
def test_a_suffix_without_a_backend_suggests_a_repository(tmp_path, name):
    with pytest.raises(StartupError, match=r"supported suffixes: none.*--model-repository"):
        default_filename(tmp_path / name, [])


def served(model, manager, name=""):
    """Return the models of the repository: each name with its files."""
    with single_model_repository(model, manager, name) as repository:
        return {
            each.name: sorted(
                str(path.relative_to(each)) for path in each.rglob("*") if path.is_file()
            )
            for each in repository.iterdir()
        }


def write(*files):
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("weights")


def test_a_folder_is_a_repository_a_model_or_has_a_single_file(tmp_path, manager):
    repository, model, single = tmp_path / "all", tmp_path / "one", tmp_path / "file"
    write(repository / "a" / "1" / "model.toy", repository / "b" / "1" / "model.toy")
    write(model / "1" / "model.toy", model / "2" / "model.toy")
    write(single / "weights.toy")
    assert served(repository, manager) == {"a": ["1/model.toy"], "b": ["1/model.toy"]}
    assert served(model, manager) == {"one": ["1/model.toy", "2/model.toy"]}
    assert served(single, manager) == {"weights": ["1/model.toy"]}


def test_a_name_may_be_given_unless_the_configuration_has_one(tmp_path, manager):
    write(tmp_path / "file" / "weights.toy", tmp_path / "one" / "1" / "model.toy")
    assert list(served(tmp_path / "file", manager, "given")) == ["given"]
    assert list(served(tmp_path / "file" / "weights.toy", manager, "given")) == ["given"]
    assert list(served(tmp_path / "one", manager, "given")) == ["given"]
    (tmp_path / "one" / "config.pbtxt").write_text('name: "written" backend: "toy"')
    assert list(served(tmp_path / "one", manager, "given")) == ["written"]


@pytest.mark.parametrize("name", ["../escape", "/tmp/escape", "..", "a/b"])
def test_a_name_cannot_lead_out_of_the_temporary_repository(tmp_path, manager, name):
    write(tmp_path / "one" / "1" / "model.toy")
    with pytest.raises(StartupError, match="cannot be the name of a model"):
        served(tmp_path / "one", manager, name)
    (tmp_path / "one" / "config.pbtxt").write_text(f'name: "{name}" backend: "toy"')
    with pytest.raises(StartupError, match="cannot be the name of a model"):
        served(tmp_path / "one", manager)


class LlamaFolder:
    @hookimpl
    def tritonpy_backend_folders(self):
        return {"llamacpp": Path("/somewhere")}


class OpenAi:
    @hookimpl
    def tritonpy_frontends(self):
        return {"openai": "nowhere:Frontend"}


def test_a_gguf_file_is_for_a_backend_in_a_folder(tmp_path, manager):
    model = tmp_path / "tiny.gguf"
    model.write_text("weights")
    named = pytest.raises(StartupError, match="tritonpy-backend-llamacpp")
    with named, single_model_repository(model, manager):
        pass
    manager.register(LlamaFolder(), "llama")
    with single_model_repository(model, manager) as repository:
        assert (repository / "tiny" / "1" / "model.gguf").read_text() == "weights"


def test_a_language_model_has_the_openai_api_where_it_is_installed(manager):
    assert "openai" not in with_chat(ServerConfig(), manager).frontends
    manager.register(OpenAi(), "openai")
    assert with_chat(ServerConfig(), manager).frontends["openai"] == {}
    given = ServerConfig(frontends={"openai": False})
    assert with_chat(given, manager).frontends["openai"] is False


def test_a_file_becomes_a_temporary_repository(tmp_path, manager):
    model = tmp_path / "digits.v1.toy"
    model.write_text("weights")
    (tmp_path / "digits.v1.toy.data").write_text("more")
    (tmp_path / "unrelated").write_text("")
    with single_model_repository(model, manager) as repository:
        files = {
            str(path.relative_to(repository)): path.read_text()
            for path in repository.rglob("*")
            if path.is_file()
        }
        assert files == {
            "digits.v1/1/model.toy": "weights",
            "digits.v1/1/digits.v1.toy.data": "more",
        }
    assert not repository.exists()
    assert model.read_text() == "weights"


def test_weights_of_the_same_name_are_included_without_preferred_models(tmp_path, manager):
    for name in ("digits.toy", "digits.bin", "digits.onnx", "digit.bin"):
        (tmp_path / name).write_text(name)
    (tmp_path / "digits.data").mkdir()
    with single_model_repository(tmp_path / "digits.toy", manager) as repository:
        assert {
            path.name: path.read_text() for path in (repository / "digits" / "1").iterdir()
        } == {
            "model.toy": "digits.toy",
            "model.bin": "digits.bin",
        }


def test_a_missing_model_is_named(tmp_path, manager):
    with (
        pytest.raises(StartupError, match="does not exist"),
        single_model_repository(tmp_path / "a.toy", manager),
    ):
        pass
