from __future__ import annotations

import argparse
import subprocess
import sys

import msgspec
import pytest

from tritonpy import hookimpl
from tritonpy.frontend import Frontend
from tritonpy.plugins import PLUGIN_SECTIONS, make_plugin_manager
from tritonpy_config.server import InvalidServerConfig, ServerConfig, decode_server_config
from tritonpy_serve.command import (
    FLAGS,
    MEMORY_FLAGS,
    ServeCommand,
    bind_metrics_like_http,
    build_config,
    describe_server_options,
    device_size,
)
from tritonpy_serve.overlay import BadFlags, Origins, overlay, read_flags


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
    flags = given(
        model_repository="a",
        model_control_mode="EXPLICIT",
        load_model="m",
        log_verbose="1",
        host="0.0.0.0",
    )
    config = build_config(None, flags, Origins())
    assert [repository.url for repository in config.repositories] == ["a"]
    assert (config.control.mode, config.control.load) == ("explicit", ["m"])
    assert config.logging.verbose == 1
    assert config.host == "0.0.0.0"


def test_load_model_requires_explicit_mode():
    with pytest.raises(
        BadFlags,
        match="Use of '--load-model' requires setting '--model-control-mode=explicit' as well",
    ):
        build_config(None, given(load_model="m"), Origins())
    assert build_config(
        {"control": {"mode": "explicit"}}, given(load_model="m"), Origins()
    ).control.load == ["m"]


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
        assert any(
            line.strip().startswith(f"--{flag.name}") and f"[{flag.meaning()}]" in line
            for line in lines
        )


def test_every_common_option_is_a_flag():
    assert set(ServeCommand.common_options) <= {"--config", *(f"--{flag.name}" for flag in FLAGS)}


def test_the_old_and_the_new_flag_of_the_cache_exclude_each_other():
    flags = read_flags(
        FLAGS, {"response-cache-byte-size": ["4096"], "cache-config": ["local,size=4096"]}
    )
    with pytest.raises(
        BadFlags,
        match="Error: Incompatible flags --response-cache-byte-size and --cache-config both provided",
    ):
        build_config(None, flags, Origins())
    old = read_flags(FLAGS, {"response-cache-byte-size": ["4096"]})
    assert build_config(None, old, Origins()).cache == {"local": {"size": 4096}}


CODE = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
from tritonpy_serve.command import allow_many_open_files
allow_many_open_files()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
allow_many_open_files()
"""


def test_the_soft_limit_becomes_the_hard_one():
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_every_key_of_the_server_is_listed():
    lines = describe_server_options().splitlines()
    for field in msgspec.structs.fields(ServerConfig):
        listed = [
            line
            for line in lines
            if line == f"  {field.name}" or line.startswith(f"  {field.name}: ")
        ]
        assert len(listed) == (field.name not in PLUGIN_SECTIONS), field.name


def test_a_section_lists_its_keys_with_type_default_and_meaning():
    text = describe_server_options()
    assert (
        "  rate_limit\n"
        '    mode: text; default "off"\n'
        "        off: every idle instance may run; execution_count: an instance needs its resources; or the name of another plugin.\n"
    ) in text
    assert (
        '\n    pinned_memory_pool_byte_size: a size such as 67108864 or "64MiB", at least 0; default 268435456\n'
        in text
    )
    assert '\n  host: text, of length 1 or more; default "127.0.0.1"\n' in text


def configured(**flags):
    return decode_server_config(overlay({}, read_flags(MEMORY_FLAGS, flags), Origins())).memory


def test_flags_set_the_section_memory():
    memory = configured(
        **{
            "memory-budget": ["8GiB"],
            "memory-limit": ["cpu:4GiB", "0:20GiB"],
            "lazy-model": ["a*", "b"],
            "pinned-model": ["big"],
            "first-request": ["refuse"],
        }
    )
    assert memory.budget == 8 << 30
    assert memory.devices == {"cpu": 4 << 30, "0": 20 << 30}
    assert (memory.lazy, memory.pinned, memory.first_request) == (["a*", "b"], ["big"], "refuse")


@pytest.mark.parametrize("text", ["20GiB", "0:", ":1"])
def test_a_limit_names_device_and_size(text):
    with pytest.raises(ValueError, match="DEVICE:SIZE"):
        device_size(text)


def test_an_invalid_flag_is_reported():
    with pytest.raises(BadFlags, match="first-request"):
        configured(**{"first-request": ["maybe"]})
