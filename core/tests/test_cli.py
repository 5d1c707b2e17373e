from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial

import pytest

import tritonpy
from tritonpy.cli import PluginsCommand, as_json, as_table, find_command, main
from tritonpy.plugins import PluginInfo, Registration, install_command, make_plugin_manager
from tritonpy_serve.command import FLAGS

PLUGIN = '''
from tritonpy import Backend, Command, hookimpl
from tritonpy_protos import model_config_pb2


class Doubler(Backend):
    default_filenames = ("model.toy",)

    @classmethod
    def auto_complete(cls, model):
        config = model_config_pb2.ModelConfig()
        config.CopyFrom(model.config)
        config.max_batch_size = 0
        for tensor, name in ((config.input, "IN"), (config.output, "OUT")):
            tensor.add(name=name, data_type=model_config_pb2.TYPE_FP32, dims=[-1])
        return config

    def infer(self, inputs):
        return {"OUT": inputs["IN"] * 2}


class Greet(Command):
    """Say hello."""

    def configure(self, parser):
        parser.add_argument("--name", default="you")

    def run(self, arguments):
        print(f"hello {arguments.name}")
        return 7


@hookimpl
def tritonpy_backends():
    return {"doubler": Doubler}


@hookimpl
def tritonpy_commands():
    return {"greet": Greet}
'''
RUN = "import sys; from tritonpy.cli import main; sys.exit(main())"
NO_PORTS = ("--allow-http=false", "--allow-grpc=false", "--allow-metrics=false")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with a backend and a command, found by its entry points."""
    site = tmp_path / "site"
    (site / "toy_plugin-1.2.dist-info").mkdir(parents=True)
    (site / "toy_plugin-1.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.2\n"
    )
    (site / "toy_plugin-1.2.dist-info" / "entry_points.txt").write_text(
        "[tritonpy]\ntoy = toy_plugin\n"
    )
    (site / "toy_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("toy_plugin", None)


@pytest.fixture(autouse=True)
def _work_in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def refusal(capsys, *arguments):
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_the_overview_includes_commands_of_plugins(installed, capsys):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    lines = [line.split(maxsplit=1) for line in printed.splitlines()]
    assert ["serve", "Serve models."] in lines
    assert ["greet", "Say hello."] in lines
    assert main([]) == 1


def test_a_command_sets_the_exit_status_of_usage_errors(installed, capsys, monkeypatch):
    arguments = ["greet", "--nosuch=1"]
    assert "unrecognized option '--nosuch'" in refusal(capsys, *arguments)
    monkeypatch.setattr(find_command("greet"), "usage_status", 2)
    assert main(arguments) == 2
    assert "unrecognized option '--nosuch'" in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"tritonpy {tritonpy.__version__} (request path: ")


def test_a_plugin_command_gets_its_arguments_and_returns_its_status(installed, capsys):
    assert main(["greet", "--name=me"]) == 7
    assert capsys.readouterr().out == "hello me\n"


def test_an_unknown_command_suggests_the_closest_one(capsys):
    assert refusal(capsys, "srve") == "error: unknown command 'srve'; did you mean 'serve'?\n"


def test_a_command_that_is_not_installed_names_its_package(capsys, monkeypatch):
    bare = partial(make_plugin_manager, discover=False)
    monkeypatch.setattr(sys.modules["tritonpy.cli"], "make_plugin_manager", bare)
    assert (
        refusal(capsys, "bench")
        == f"error: the command 'bench' is not installed: {tritonpy.plugins.install_command('tritonpy-bench')}\n"
    )


def test_installed_plugins_are_listed(installed, capsys):
    assert main(["plugins"]) == 0
    assert any(
        line.split() == ["toy-plugin", "1.2", "backends:", "doubler"]
        for line in capsys.readouterr().out.splitlines()
    )
    assert main(["plugins", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["toy"]["provides"]["tritonpy_commands"] == ["greet"]


def test_the_help_of_serve_is_short_and_refers_to_the_complete_help(installed, capsys):
    assert main(["serve", "--help"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) < 80
    for line in (
        "--model-repository VALUE",
        "--http-port N",
        "--help-all",
        "positional arguments:",
        "Model Repository:",
    ):
        assert line in printed
    for hidden in ("--vertex-ai-port", "Vertex:", "frontends.http", "[implemented"):
        assert hidden not in printed


def test_the_complete_help_is_on_standard_output_and_has_every_flag(installed, capsys):
    assert main(["serve", "--help-all"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert all(f"--{flag.name}" in captured.out for flag in FLAGS)
    assert "Options of the server (keys of server.yaml):" in captured.out


def test_the_help_of_serve_is_printed_with_a_broken_plugin(installed, capsys):
    (installed / "toy_plugin.py").write_text("import nothing_of_that_name")
    assert main(["serve", "--help-all"]) == 0
    printed = capsys.readouterr().out
    assert "usage: tritonpy serve [MODEL] [--config FILE] [--flag=value ...]" in printed
    assert (
        "Options of plugins are not available: plugin 'toy' of toy-plugin cannot be imported"
        in printed
    )


def test_a_command_is_found_without_loading_the_others(monkeypatch):
    load = Registration.load

    def checked(registration):
        assert registration.name == "plugins"
        return load(registration)

    monkeypatch.setattr(Registration, "load", checked)
    assert find_command("plugins") is PluginsCommand


def test_all_bad_flags_are_reported_in_one_text(capsys):
    assert refusal(capsys, "serve", "--http-port=abc", "--allow-http", "maybe") == (
        'Bad option: "--allow-http".\ninvalid value for bool option: maybe\n--allow-http takes true or false.\n'
        'Bad option: "--http-port".\nInvalid option value. Got abc\n--http-port takes the number of a port, such as 8000.\n'
    )


def test_problems_of_the_file_have_their_position(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("id: a\ncontrl: {mode: none}\n")
    assert refusal(capsys, "serve", "--config", str(file), "--model-config-name=a b") == (
        f"error: {file} has 2 problems:\n"
        "  line 2, column 1: contrl: unknown option 'contrl'; did you mean 'control'?\n"
        "  --model-config-name: expected text, matching ^[^\\s/]*$; got 'a b'\n"
    )


def test_nothing_to_serve_has_a_hint(capsys):
    assert "nothing to serve: the folder ./models does not exist" in refusal(capsys, "serve")


def test_a_model_and_a_repository_exclude_each_other(capsys):
    assert "use either a model (a.toy) or --model-repository, not both" in refusal(
        capsys, "serve", "a.toy", "--model-repository=x"
    )


def test_one_file_is_served_until_a_signal(installed, tmp_path):
    (tmp_path / "double.toy").write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"PYTHONPATH": str(installed), "TMPDIR": str(temporary)}
    command = [
        sys.executable,
        "-c",
        RUN,
        "serve",
        str(tmp_path / "double.toy"),
        "--log-format=json",
        *NO_PORTS,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        lines = []
        while not lines or (lines[-1] and not json.loads(lines[-1])["message"].startswith("ready")):
            lines.append(server.stderr.readline())
        repositories = list(temporary.glob("tritonpy-*/double/1/model.toy"))
        server.send_signal(signal.SIGTERM)
        rest = server.stderr.read()
    assert server.returncode == 0, [*lines, rest]
    assert len(repositories) == 1
    assert list(temporary.glob("tritonpy-*")) == []
    assert any("double" in str(json.loads(line).get("models", "")) for line in lines)
    assert "Traceback" not in rest


def test_a_signal_before_the_server_is_built_ends_it_without_a_traceback(installed, tmp_path):
    signalling = PLUGIN.replace(
        "class Doubler",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n\n\nclass Doubler",
    )
    (installed / "toy_plugin.py").write_text(signalling)
    command = [sys.executable, "-c", RUN, "serve", "a.toy", "--model-repository=x", *NO_PORTS]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_a_model_that_fails_ends_the_server_with_one_text(installed, tmp_path):
    (installed / "toy_plugin.py").write_text(
        PLUGIN.replace(
            "def infer(",
            "def __init__(self, *_):\n        raise ValueError('no weights')\n\n    def infer(",
        )
    )
    (tmp_path / "double.toy").write_text("")
    command = [sys.executable, "-c", RUN, "serve", str(tmp_path / "double.toy"), *NO_PORTS]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "no weights" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: failed to load all models: double")


PLUGINS = [
    PluginInfo("core", "tritonpy", "0.1.0", {"tritonpy_repositories": ["file"]}),
    PluginInfo(
        "toy", "a-toy", "12", {"tritonpy_backends": ["x", "y"], "tritonpy_server_started": []}
    ),
    PluginInfo("idle", "idle", "1", {}),
]


def test_the_table_lists_the_names_of_each_plugin():
    assert as_table(PLUGINS).splitlines() == [
        "DISTRIBUTION  VERSION  PROVIDES",
        "tritonpy      0.1.0    repositories: file",
        "a-toy         12       backends: x, y",
        "                       server started",
        "idle          1        nothing",
    ]


def test_without_plugins_there_is_a_hint():
    assert install_command("tritonpy-backend-onnx") in as_table([])


def test_the_json_form_has_every_hook():
    found = json.loads(as_json(PLUGINS))
    assert found[1] == {
        "name": "toy",
        "distribution": "a-toy",
        "version": "12",
        "provides": {"tritonpy_backends": ["x", "y"], "tritonpy_server_started": []},
    }
