from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import pytest
from msgspec import Meta

from tritonpy import Backend, Options
from tritonpy.plugins import PluginError, install_command
from tritonpy.plugins.backends import Backends
from tritonpy_config.backend_folders import BackendFolders
from tritonpy_config.known_backends import BackendFiles
from tritonpy_config.server import InvalidServerConfig

from ..toys.serving import ToyPlugin, toy_plugins


class Plain(Backend):
    pass


class Open(Backend):
    class Options(Options, frozen=True):
        collects = "settings"
        settings: Mapping[str, str] = {}
        threads: int = 1


class Tuned(Backend):
    default_filenames = ("model.tuned", "model.old")
    platforms = ("tuned_platform",)

    class Options(Options, frozen=True):
        threads: Annotated[int, Meta(ge=1)] = 1
        default_max_batch_size: int | None = None


def backends(options=None, defaults=None, **more):
    return Backends(
        toy_plugins(ToyPlugin({"plain": Plain, "tuned": Tuned} | more)),
        options or {},
        defaults or {},
    )


def test_a_backend_is_found_by_its_name():
    assert backends().get("tuned") is Tuned


@pytest.mark.parametrize(
    ("name", "says"),
    [("tunes", "did you mean 'tuned'"), ("onnxruntime", install_command("tritonpy-backend-onnx"))],
)
def test_a_missing_backend_has_a_hint(name, says):
    with pytest.raises(PluginError, match=re.escape(says)):
        backends().get(name)


@pytest.mark.parametrize("key", ["default-max-batch-size", "default_max_batch_size"])
def test_a_backend_s_options_override_those_of_all_backends(key):
    found = backends({"tuned": {"threads": 3}}, {key: 9, "unknown-to-it": 1}).options("tuned")
    assert (found.threads, found.default_max_batch_size) == (3, 9)
    assert backends({"tuned": {key: 5}}, {key: 9}).options("tuned").default_max_batch_size == 5


def test_a_backend_without_options_accepts_none():
    assert backends(defaults={"default-max-batch-size": 9}).options("plain") == Plain.Options()


@pytest.mark.parametrize("wrong", [{"thread": 3}, {"threads": 0}, {"threads": "many"}])
def test_wrong_options_are_found_before_any_model_loads(wrong):
    with pytest.raises(InvalidServerConfig, match=r"backends\.tuned"):
        backends({"tuned": wrong}).check_options()


def test_options_of_a_backend_that_is_not_installed_are_ignored():
    backends({"nobody": {"threads": 3}}).check_options()


@pytest.mark.parametrize(
    ("options", "defaults", "size"),
    [
        ({}, {}, 4),
        ({}, {"default-max-batch-size": 9}, 9),
        ({"tuned": {"default-max-batch-size": 5}}, {"default-max-batch-size": 9}, 5),
        ({"tuned": {"default-max-batch-size": 0}}, {}, 0),
    ],
)
def test_the_default_batch_size(options, defaults, size):
    assert backends(options, defaults).default_max_batch_size("tuned") == size


def test_the_shared_batch_size_holds_for_backends_without_that_option():
    assert backends(defaults={"default-max-batch-size": "9"}).default_max_batch_size("plain") == 9


def test_files_are_those_of_every_backend_or_of_one():
    tuned = BackendFiles("tuned", ("tuned_platform",), ("model.tuned", "model.old"))
    assert backends().files() == [BackendFiles("plain"), tuned]
    assert backends().files("tuned") == [tuned]
    assert backends().files("nobody") == []


def test_a_backend_that_cannot_be_imported_does_not_affect_other_models(caplog):
    found = backends(broken="no_such_module:Backend")
    assert [files.name for files in found.files()] == ["plain", "tuned"]
    assert "plugin 'broken'" in caplog.text
    assert "no_such_module" in caplog.text
    with pytest.raises(PluginError, match="no_such_module"):
        found.files("broken")


def test_only_the_requested_backend_is_imported():
    found = backends(heavy="no_such_module:Heavy")
    assert [files.name for files in found.files("plain")] == ["plain"]
    with pytest.raises(PluginError, match="no_such_module"):
        found.files("heavy")


@pytest.fixture
def folders(tmp_path):
    for name in ("mine", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").touch()
    return BackendFolders(tmp_path)


def with_folders(folders, options=None, defaults=None, **more):
    return Backends(
        toy_plugins(ToyPlugin({"plain": Plain} | more)), options or {}, defaults or {}, folders
    )


def test_a_folder_is_served_by_the_python_backend(folders):
    found = with_folders(folders, python=Tuned)
    assert found.get("mine") is Tuned
    assert found.folder("mine") == folders.folder("mine")
    assert found.folder("nobody") is None


def test_a_plugin_s_name_takes_precedence_over_a_folder_unless_the_model_requests_it(folders):
    found = with_folders(folders, python=Tuned)
    assert (found.get("plain"), found.folder("plain")) == (Plain, None)
    assert (found.get("plain", "model.py"), found.folder("plain", "model.py")) == (
        Tuned,
        folders.folder("plain"),
    )


def test_a_library_as_runtime_needs_the_backend_of_the_c_interface(folders):
    with pytest.raises(PluginError, match="is written in C, and no plugin provides backend 'c'"):
        with_folders(folders, python=Tuned).get("mine", "libtriton_mine.so")
    assert with_folders(folders, c=Tuned).get("mine", "libtriton_mine.so") is Tuned


@pytest.mark.parametrize(
    ("name", "runtime", "executor"),
    [
        ("native", "", "c"),
        ("native", "model.py", "native"),
        ("plain", "", "plain"),  # the plugin takes precedence
        ("plain", "libtriton_plain.so", "c"),  # unless the model requests the library
        ("plain", "libtriton_other.so", "plain"),
        ("mine", "", "c"),  # as in Triton, the library takes precedence over model.py
        ("mine", "model.py", "python"),
        ("../native", "", "../native"),
    ],
)
def test_a_library_in_the_backend_s_folder_is_executed_by_the_backend_c(
    folders, tmp_path, name, runtime, executor
):
    for backend in ("native", "plain", "mine"):
        (tmp_path / backend).mkdir(exist_ok=True)
        (tmp_path / backend / f"libtriton_{backend}.so").touch()
    found = with_folders(folders, c=Tuned, python=Tuned)
    assert found.executor(name, runtime) == executor
    folder = found.folder(name, runtime)
    assert folder == (None if executor == name else tmp_path / name)


def test_a_backend_of_the_c_interface_takes_every_setting(folders, tmp_path):
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "libtriton_native.so").touch()
    options = {"native": {"threads": 2, "fast": True, "isolation": "thread"}}
    found = with_folders(folders, options, {"level": "x"}, c=Open)
    assert found.options("native").settings == {"level": "x", "fast": "true"}
    assert found.options("native").threads == 2
    assert found.isolation("native") == "thread"


def test_a_folder_without_the_python_backend_names_the_package_to_install(folders):
    with pytest.raises(PluginError) as missing:
        with_folders(folders).get("mine")
    assert str(missing.value) == (
        f"the backend in {folders.folder('mine')} is written in Python, and no plugin provides backend 'python': "
        f"{install_command('tritonpy-backend-python')}"
    )


def test_a_folder_s_options_override_those_of_the_python_backend(folders):
    options = {"python": {"threads": 3, "default-max-batch-size": 5}, "mine": {"threads": 7}}
    found = with_folders(folders, options, {"default_max_batch_size": 9}, python=Tuned)
    assert (found.options("mine").threads, found.options("mine").default_max_batch_size) == (7, 5)
    assert found.default_max_batch_size("mine") == 5
    assert found.options("python").threads == 3


def test_a_name_has_separate_options_for_its_folder(folders):
    found = with_folders(folders, {"plain": {}, "python": {"threads": 3}}, python=Tuned)
    assert found.options("plain") == Plain.Options()
    assert found.options("plain", "model.py").threads == 3


def test_wrong_options_of_a_folder_are_found_at_the_start(folders):
    with pytest.raises(InvalidServerConfig, match=r"backends\.mine"):
        with_folders(folders, {"mine": {"threads": 0}}, python=Tuned).check_options()
    with_folders(folders, {"mine": {"threads": 0}}).check_options()  # the valid options are unknown


@pytest.mark.parametrize("name", ["plain", "tuned"])
def test_every_backend_has_the_option_isolation(name):
    assert backends().isolation(name) is None
    assert backends({name: {"isolation": "process"}}).isolation(name) == "process"
    assert backends(defaults={"isolation": "process"}).isolation(name) == "process"
    assert (
        backends({name: {"isolation": "thread"}}, {"isolation": "process"}).isolation(name)
        == "thread"
    )
    assert backends({name: {"isolation": "process"}}).options(name) == backends().options(name)


def test_an_unknown_isolation_is_refused():
    with pytest.raises(InvalidServerConfig, match=r"backends\.plain\.isolation: .*process"):
        backends({"plain": {"isolation": "proces"}}).options("plain")
