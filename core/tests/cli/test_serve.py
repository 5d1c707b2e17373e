from __future__ import annotations

import argparse

import pytest

from tritonpy import Frontend, hookimpl
from tritonpy.cli.overlay import BadFlags, Origins, read_flags
from tritonpy.cli.serve import FLAGS, ServeCommand, bind_metrics_like_http, build_config
from tritonpy.config.server import InvalidServerConfig
from tritonpy.plugins import make_plugin_manager


class Toys:
    @hookimpl
    def tritonpy_frontends(self):
        return {"http": Frontend, "metrics": Frontend}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Toys(), "toys")
    return manager


def given(**texts):
    return read_flags(FLAGS, {name.replace("_", "-"): [text] for name, text in texts.items()})


def test_flags_alone_make_a_configuration():
    flags = given(model_repository="a", model_control_mode="EXPLICIT", load_model="m", log_verbose="1", host="0.0.0.0")
    config = build_config(None, flags, Origins())
    assert [repository.url for repository in config.repositories] == ["a"]
    assert (config.control.mode, config.control.load) == ("explicit", ["m"])
    assert config.logging.verbose == 1
    assert config.host == "0.0.0.0"


def test_load_model_requires_explicit_mode():
    with pytest.raises(
        BadFlags, match="Use of '--load-model' requires setting '--model-control-mode=explicit' as well"
    ):
        build_config(None, given(load_model="m"), Origins())
    assert build_config({"control": {"mode": "explicit"}}, given(load_model="m"), Origins()).control.load == ["m"]


def test_a_problem_of_a_flag_names_the_flag():
    origins = Origins()
    with pytest.raises(InvalidServerConfig) as caught:
        build_config({"idd": 1}, given(model_config_name="a b"), origins)
    texts = [str(origins.locate(problem)) for problem in caught.value.problems]
    assert texts[0].startswith("idd: unknown option")
    assert texts[1].startswith("--model-config-name: expected text")


def test_metrics_listen_where_http_does_as_in_triton(manager):
    flags = given(http_address="0.0.0.0")
    config = bind_metrics_like_http(build_config(None, flags, Origins()), flags, manager)
    assert config.frontends == {"http": {"host": "0.0.0.0"}, "metrics": {"host": "0.0.0.0"}}


@pytest.mark.parametrize(
    "texts",
    [
        {"http_address": "0.0.0.0", "metrics_address": "127.0.0.1"},
        {"http_address": "0.0.0.0", "allow_metrics": "false"},
        {"http_address": "unix:/run/http.sock"},
        {},
    ],
)
def test_metrics_keep_their_own_address(manager, texts):
    flags = given(**texts)
    config = build_config(None, flags, Origins())
    assert bind_metrics_like_http(config, flags, manager) is config


def test_the_help_has_the_status_of_each_flag():
    parser = argparse.ArgumentParser(
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=200, width=2000)
    )
    ServeCommand().configure(parser)
    lines = parser.format_help().splitlines()
    for flag in FLAGS:
        assert any(line.strip().startswith(f"--{flag.name}") and f"[{flag.meaning()}]" in line for line in lines)


def test_every_common_option_is_a_flag():
    assert set(ServeCommand.common_options) <= {"--config", *(f"--{flag.name}" for flag in FLAGS)}


def test_the_old_and_the_new_flag_of_the_cache_exclude_each_other():
    flags = read_flags(FLAGS, {"response-cache-byte-size": ["4096"], "cache-config": ["local,size=4096"]})
    with pytest.raises(
        BadFlags, match="Error: Incompatible flags --response-cache-byte-size and --cache-config both provided"
    ):
        build_config(None, flags, Origins())
    old = read_flags(FLAGS, {"response-cache-byte-size": ["4096"]})
    assert build_config(None, old, Origins()).cache == {"local": {"size": 4096}}
