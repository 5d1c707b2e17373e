from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from tritonpy.api.contexts import ModelContext
from tritonpy.api.repository import ModelListing
from tritonpy.plugins import install_command
from tritonpy.plugins.backends import Backends
from tritonpy.repository.model_loader import (
    load_hint,
    read_labels,
    resolve_runtime,
    unreadable_hint,
)
from tritonpy_config.backend_folders import BackendFolders
from tritonpy_metrics import SERVER_METRICS, MetricKind
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ModelRepository
from tritonpy_testing.parse import model_config
from tritonpy_types.errors import InvalidArgument, TritonError

from ..toys.doubler import Doubler
from ..toys.serving import ToyPlugin, ask, config_of, numbers, toy_plugins
from .version_backend import error_of, index, write


def load_error(server, name):
    with pytest.raises(TritonError) as failed:
        server.engine.load_model(name)
    return failed.value.message


def test_a_folder_with_only_a_backend_s_file_is_a_model(
    serve, model_repository, recorder, event_log
):
    write(model_repository, "m", 42)
    with serve() as server:
        server.engine.load_model("m")
        config = server.engine.model_config("m")
        assert (config.name, config.backend, config.default_model_filename) == (
            "m",
            "version_reporter",
            "model.txt",
        )
        (responses,) = recorder.wait(ask(server.engine, recorder, "m", [0]))
        assert numbers(responses) == [[42]]
    event_log.wait_for_handles()


def test_the_load_reuses_what_auto_completion_opened(serve, model_repository, event_log):
    write(model_repository, "m")
    with serve() as server:
        server.engine.load_model("m")
        assert event_log.events("auto_complete", "load") == [
            ("auto_complete", "m", 1),
            ("load", "m", 1),
        ]
        assert event_log.open_handles == [("m", 1)]
    event_log.wait_for_handles()


def test_auto_completion_uses_a_version_that_is_loaded(serve, model_repository, event_log):
    for version in (1, 2, 3):
        write(
            model_repository,
            "m",
            version=version,
            config="version_policy { specific { versions: [1, 2] } }",
        )
    with serve() as server:
        server.engine.load_model("m")
        assert event_log.events("auto_complete") == [("auto_complete", "m", 2)]
        assert sorted(event_log.open_handles) == [("m", 1), ("m", 2)]
    event_log.wait_for_handles()


def test_completion_can_be_turned_off(serve, model_repository, event_log):
    write(model_repository, "m", config=config_of("version_reporter"))
    with serve(disable_auto_complete=True) as server:
        server.engine.load_model("m")
        assert event_log.events("auto_complete") == []


@pytest.mark.parametrize(
    ("text", "config", "says"),
    [
        ("cannot be completed", "", "no signature"),
        ("cannot be loaded", "", "no weights"),
        ("has no instance", "", "no memory"),
        ("", "input { name: 'IN' data_type: TYPE_INT32 dims: -5 } max_batch_size: 2", "dims"),
        (
            "",
            "output { name: 'OUT' data_type: TYPE_INT32 dims: 1 label_filename: 'no.txt' }",
            "label file 'no.txt'",
        ),
        ("", "sequence_batching {}", "sequence"),
        (
            "",
            "backend: 'version_reporter' dynamic_batching {}",
            install_command("tritonpy-batching-dynamic"),
        ),
    ],
)
def test_a_failed_load_frees_what_was_opened(
    serve, model_repository, event_log, text, config, says
):
    write(model_repository, "m", text, config=config)
    with serve() as server:
        assert says in load_error(server, "m")
        assert event_log.events("auto_complete") == [("auto_complete", "m", 1)]
        assert event_log.open_handles == []


def test_a_failed_auto_completion_fails_every_version(serve, model_repository):
    for version in (1, 3):
        write(
            model_repository,
            "m",
            "cannot be completed",
            version,
            'backend: "version_reporter" version_policy { all {} }',
        )
    with serve() as server:
        text = load_error(server, "m")
        assert [(one.version, one.state) for one in server.engine.repository_index()] == [
            ("1", "UNAVAILABLE"),
            ("3", "UNAVAILABLE"),
        ]
    reason = "Internal: ValueError: no signature"
    assert (
        text
        == "load failed for model 'm': "
        + "".join(f"version {one} is at UNAVAILABLE state: {reason};" for one in (1, 3))
        + "\n"
    )


def test_all_problems_of_a_configuration_are_reported_with_positions(serve, model_repository):
    write(
        model_repository,
        "m",
        config='backend: "version_reporter"\nmax_batch_sise: 3\n  platfrom: "x"\n',
    )
    with serve() as server:
        message = load_error(server, "m")
    assert message.startswith("failed to load 'm', failed to poll from model repository: ")
    assert "line 2, column 1: " in message
    assert "max_batch_size" in message
    assert "line 3, column 3: " in message


def test_validation_problems_have_positions(serve, model_repository):
    write(
        model_repository,
        "m",
        config='backend: "version_reporter"\ninput { name: "IN"\n data_type: TYPE_INT32\n dims: -5 }\nname: "else"',
    )
    with serve() as server:
        message = load_error(server, "m")
    assert "line 4, column " in message
    assert "line 5, column 1: " in message


@pytest.mark.parametrize(
    "content",
    [b"\x00\xff\xfe garbage", b"{" * 10_000, b"input [", "max_batch_size".encode("utf-16")],
)
def test_an_unparsable_configuration_fails_only_its_own_load(serve, model_repository, content):
    write(model_repository, "good")
    write(model_repository, "m")
    (model_repository.path / "m" / "config.pbtxt").write_bytes(content)
    with serve() as server:
        server.engine.load_model("good")
        assert "config.pbtxt has " in load_error(server, "m")
        assert server.engine.is_model_ready("good")


def test_a_missing_backend_gives_an_install_command(serve, model_repository):
    write(model_repository, "m", config='backend: "pytorch"')
    with serve() as server:
        assert install_command("tritonpy-backend-torch") in load_error(server, "m")


def test_a_model_without_backend_and_files_is_rejected(serve, model_repository):
    model_repository.add("m")
    with serve() as server:
        assert "Could not determine backend for model 'm'" in load_error(server, "m")


def test_the_named_configuration_file_is_used(serve, model_repository):
    write(model_repository, "m", config='backend: "missing"')
    model_repository.add(
        "m", files={"configs/mine.pbtxt": 'backend: "version_reporter" max_batch_size: 7'}
    )
    with serve(model_config_name="mine") as server:
        server.engine.load_model("m")
        assert server.engine.model_config("m").max_batch_size == 7


def test_another_plugin_s_backend_is_not_imported_for_a_model_that_names_its_own(
    serve, model_repository
):
    write(model_repository, "m", config='backend: "version_reporter"')
    with serve(ToyPlugin({"heavy": "no_such_module:Heavy"})) as server:
        server.engine.load_model("m")


def test_syntax_errors_do_not_hide_validation_errors(serve, model_repository, event_log):
    config = """
max_batch_siz: 8
max_batch_size: 4
dynamic_batching { preferred_batch_size: [ 16 ] }
input [ { name: "IN" data_type: TYPE_INT33 dims: [ 0 ] } ]
"""
    write(model_repository, "m", config=config)
    with serve() as server:
        message = load_error(server, "m")
    for expected in (
        "max_batch_siz: unknown field 'max_batch_siz'; did you mean 'max_batch_size'?",
        "input[0].data_type: unknown value 'TYPE_INT33'",
        "dynamic batching preferred size must be <= max batch size for m",
        "model input 'IN' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ):
        assert expected in message
    assert "must specify" not in message  # keys with syntax errors are not reported as missing
    assert "4 problems" in message


class InPython(Doubler):
    """Replaces the Python backend: doubles, and records the contexts of its models."""

    seen: ClassVar[list[ModelContext]] = []

    @classmethod
    def load(cls, model):
        cls.seen.append(model)
        return model.shared


def python_plugin():
    InPython.seen.clear()
    return ToyPlugin({"python": InPython})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "backends" / "mine").mkdir(parents=True)
    (tmp_path / "backends" / "mine" / "model.py").touch()
    return tmp_path / "backends" / "mine"


@pytest.mark.parametrize("runtime", ["", 'runtime: "model.py"'])
def test_a_python_based_backend_serves_models_without_a_model_file(
    serve, model_repository, recorder, folder, runtime
):
    model_repository.add("m", config_of("mine", more=runtime), versions={1: {"weights.bin": "x"}})
    with serve(python_plugin(), backend_directory=str(folder.parent)) as server:
        server.engine.load_model("m")
        (responses,) = recorder.wait(ask(server.engine, recorder, "m", [4]))
        assert numbers(responses) == [[8]]
        config = server.engine.model_config("m")
        assert (config.backend, config.runtime, config.default_model_filename) == (
            "mine",
            "model.py",
            "",
        )
    assert [context.backend_directory for context in InPython.seen] == [folder]


def test_a_version_of_a_python_based_backend_may_be_an_empty_folder(
    serve, model_repository, folder
):
    model_repository.add("m", config_of("mine"))
    (model_repository.path / "m" / "1").mkdir(exist_ok=True)
    with serve(python_plugin(), backend_directory=str(folder.parent)) as server:
        server.engine.load_model("m")
        assert server.engine.is_model_ready("m", 1)


def test_a_model_of_the_python_backend_itself_has_no_backend_directory(
    serve, model_repository, folder
):
    model_repository.add("m", config_of("python"), versions={1: {"model.py": ""}})
    with serve(python_plugin(), backend_directory=str(folder.parent)) as server:
        server.engine.load_model("m")
        assert server.engine.model_config("m").runtime == ""
    assert [context.backend_directory for context in InPython.seen] == [None]


def test_a_missing_python_based_backend_fails_the_load(serve, model_repository, folder):
    model_repository.add(
        "m", config_of("missing", more='runtime: "model.py"'), versions={1: {"weights.bin": ""}}
    )
    with serve(python_plugin(), backend_directory=str(folder.parent)) as server:
        assert (
            "unable to find Python backend based backend library 'model.py' for model 'm'"
            in load_error(server, "m")
        )


def test_a_python_based_backend_needs_the_python_backend(serve, model_repository, folder):
    model_repository.add("m", config_of("mine"), versions={1: {"weights.bin": ""}})
    with serve(backend_directory=str(folder.parent)) as server:
        assert install_command("tritonpy-backend-python") in load_error(server, "m")


class Miscompleting(Doubler):
    """Adds an invalid input."""

    @classmethod
    def auto_complete(cls, model):
        config = type(model.config)()
        config.CopyFrom(model.config)
        config.input[0].dims[:] = [-5]
        return config


def test_problems_after_auto_completion_name_the_backend(serve, model_repository):
    model_repository.add("m", config_of("wrong"))
    with serve(ToyPlugin({"wrong": Miscompleting})) as server:
        assert "config.pbtxt, completed by backend 'wrong' has 1 problem:" in load_error(
            server, "m"
        )


class Counting(Doubler):
    """Counts its executions in a custom metric.

    Metrics created by auto-completion do not remain.
    """

    @classmethod
    def auto_complete(cls, model):
        model.metrics.family("completions", "", MetricKind.COUNTER).metric()
        return model.config

    def __init__(self, model, instance):
        super().__init__(model, instance)
        family = model.metrics.family("executions", "Executions by model", MetricKind.COUNTER)
        self.executions = family.metric({"model": model.name})
        if model.parameters.get("fails"):
            raise ValueError("no memory")

    def infer(self, inputs):
        self.executions.increment(1)
        return super().infer(inputs)


def made(server):
    return {
        family.name: [(each.labels, each.value) for each in family.metrics]
        for family in server.engine.custom_metrics()
        if family.name not in SERVER_METRICS
    }


def test_custom_metrics_exist_until_the_model_is_unloaded(serve, model_repository, recorder):
    for name in ("a", "b"):
        model_repository.add(name, config_of("counting", instances=2))
    with serve(ToyPlugin({"counting": Counting}), control={"load": ["a", "b"]}) as server:
        for model, count in (("a", 3), ("b", 1)):
            recorder.wait(*[ask(server.engine, recorder, model, [1]) for _ in range(count)])
        assert sorted(made(server)["executions"], key=str) == [
            ({"model": "a"}, 3),
            ({"model": "b"}, 1),
        ]
        assert list(made(server)) == ["executions"]
        server.engine.unload_model("a")
        assert server._repository._drainer.wait(10)
        assert made(server) == {"executions": [({"model": "b"}, 1)]}
    assert made(server) == {}


def test_a_load_that_fails_leaves_no_metric(serve, model_repository):
    model_repository.add(
        "m", config_of("counting", more='parameters { key: "fails" value { string_value: "1" } }')
    )
    with serve(ToyPlugin({"counting": Counting})) as server:
        assert "no memory" in load_error(server, "m")
        assert made(server) == {}


def config(filename: str) -> object:
    return model_config(
        f'name: "m" output {{ name: "OUT" data_type: TYPE_FP32 dims: 2 label_filename: "{filename}" }} '
        'output { name: "PLAIN" data_type: TYPE_FP32 dims: 2 }'
    )


def test_each_line_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ngrüner dog\n", encoding="utf-8")
    assert read_labels(config("labels.txt"), tmp_path) == {"OUT": ["cat", "grüner dog"]}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgument, match=r"label file 'none.txt' of model 'm' cannot be read: No such file"
    ):
        read_labels(config("none.txt"), tmp_path)


def test_a_file_outside_the_models_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(InvalidArgument, match=r"'\.\./secret' is outside the model's folder"):
        read_labels(config("../secret"), tmp_path / "m")


def test_a_file_may_be_a_link_to_where_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("cat\n")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "labels.txt").symlink_to(tmp_path / "blob")
    assert read_labels(config("labels.txt"), tmp_path / "m") == {"OUT": ["cat"]}


UNPRIVILEGED_USER = 65534


@contextlib.contextmanager
def without_privileges():
    """Drop root's privileges in this block, as root can read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_repository():
    """Return a repository in a folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        repository = ModelRepository(Path(folder) / "models")
        yield repository
        for path in sorted(repository.path.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("folder_path", "kind"),
    [("m", "folder"), ("m/1", "folder"), ("m/1/model.txt", "file"), ("m/config.pbtxt", "file")],
)
def test_an_unreadable_folder_or_file_is_named_with_a_remedy(
    serve, open_repository, caplog, folder_path, kind
):
    for name in ("first", "m"):
        write(open_repository, name, config='backend: "version_reporter"')
    path = open_repository.path / folder_path
    path.chmod(0)
    with serve(repositories=[{"url": str(open_repository.path)}]) as server:
        server.engine.load_model("first")  # imports modules that only root may be able to read
        with without_privileges():
            error = error_of(server.engine.load_model, "m")
            ((state, reason),) = [line[2:] for line in index(server) if line[0] == "m"]
    mode = "a+rx" if kind == "folder" else "a+r"
    assert f"The {kind} '{path}' cannot be read by user " in error.message
    assert f": chmod {mode} '{path}'." in error.message
    assert "The " + kind in reason
    assert state == "UNAVAILABLE"
    assert "Traceback" not in caplog.text
    assert not any(record.exc_info for record in caplog.records if record.levelname == "ERROR")


def test_readable_files_give_no_hint(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.txt").write_text("x")
    assert unreadable_hint(tmp_path) == ""
    assert unreadable_hint(tmp_path / "gone") == ""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "Could not determine backend for model 'm'.",
            " It has no version folder: put the model's file into 'm/1/'.",
        ),
        (
            "unable to find 'x' for model instance 'm'",
            ". It has no version folder: put the model's file into 'm/1/'.",
        ),
        ("no memory", ""),
    ],
)
def test_layout_hints_are_given_for_errors_that_a_wrong_layout_causes(text, hint):
    assert load_hint(text, ModelListing("m", "", {}, None), None, list) == hint


def test_a_model_file_outside_its_version_folder_gives_a_hint(serve, model_repository):
    folder = model_repository.add("m", versions={})
    folder.mkdir(parents=True)
    (folder / "model.txt").write_text("1")
    with serve() as server:
        message = error_of(server.engine.load_model, "m").message
    assert message.endswith(
        "Expected model name of the form 'model.<backend_name>'. 'model.txt' is in the model's folder: move it into a version "
        "folder, as 'm/1/model.txt'."
    )


class Versatile(Doubler):
    runtimes = ("model.py",)


@pytest.fixture
def backends(tmp_path: Path) -> Backends:
    for name in ("mine", "both"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").touch()
    plugins = toy_plugins(
        ToyPlugin({"python": Doubler, "both": Doubler, "toy": Doubler, "versatile": Versatile})
    )
    return Backends(plugins, {}, {}, BackendFolders(tmp_path))


@pytest.mark.parametrize(
    ("backend", "given", "found"),
    [
        ("mine", "", "model.py"),
        ("mine", "model.py", "model.py"),
        ("both", "", ""),  # the plugin takes precedence
        ("both", "model.py", "model.py"),
        ("toy", "", ""),
        ("missing", "", ""),
        ("", "", ""),
        ("mine", "libtriton_mine.so", "libtriton_mine.so"),
        ("toy", "libtriton_toy.so", "libtriton_toy.so"),
        ("versatile", "model.py", "model.py"),  # the plugin serves this runtime
    ],
)
def test_a_backend_folder_serves_models_that_no_plugin_serves(
    backends: Backends, backend: str, given: str, found: str
) -> None:
    assert resolve_runtime(ModelConfig(name="m", backend=backend, runtime=given), backends) == found


@pytest.mark.parametrize(
    ("backend", "files", "found"),
    [
        ("own", ["libtriton_own.so"], "libtriton_own.so"),
        ("own", ["1/libtriton_own.so"], "libtriton_own.so"),
        ("own", ["1/libtriton_other.so"], ""),
        ("toy", ["1/libtriton_toy.so"], ""),  # the plugin takes precedence
    ],
)
def test_a_library_in_the_model_s_folder_is_its_runtime(
    backends: Backends, backend: str, files: list[str], found: str
) -> None:
    config = ModelConfig(name="m", backend=backend)
    assert resolve_runtime(config, backends, files) == found


@pytest.mark.parametrize("backend", ["missing", "python", "toy"])
def test_a_missing_backend_folder_is_an_error(
    backends: Backends, tmp_path: Path, backend: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        resolve_runtime(ModelConfig(name="m", backend=backend, runtime="model.py"), backends)
    assert refused.value.message == (
        "unable to find Python backend based backend library 'model.py' for model 'm', "
        f"searched: '{tmp_path}/{backend}/model.py'"
    )


def test_a_backend_that_serves_the_runtime_itself_is_the_registered_one(backends: Backends) -> None:
    assert backends.get("versatile", "model.py") is Versatile
    assert backends.folder("versatile", "model.py") is None
