"""SECURITY.md names options, flags, defaults and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tritonpy import Options
from tritonpy.plugins import make_plugin_manager
from tritonpy_config.server import ServerConfig
from tritonpy_serve.command import FLAGS

ROOT = Path(__file__).resolve().parent.parent
POLICY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
KINDS = {"frontends": "tritonpy_frontends", "backends": "tritonpy_backends"}
MODEL_FIELDS = {"max_queue_size"}  # fields of a model's configuration


def section(title: str) -> str:
    return POLICY.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def fields(kind: Any) -> dict[str, Any]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def options(section_name: str, plugin: str) -> type[Options]:
    kind: type[Options] = (
        make_plugin_manager().get(KINDS[section_name], plugin, "plugin").load().Options
    )
    return kind


def exists(option: str) -> bool:
    """Return whether `option` is a path in server.yaml or, without a dot, a frontend option."""
    first, *rest = option.split(".")
    if first in KINDS:
        kind, rest = options(first, rest[0]), rest[1:]
    elif rest or first in fields(ServerConfig):
        kind, rest = ServerConfig, [first, *rest]
    else:
        return first in MODEL_FIELDS or any(
            first in fields(options("frontends", name)) for name in ("http", "grpc")
        )
    for name in rest:
        if name not in fields(kind):
            return False
        kind = fields(kind)[name].type
    return True


def named_options() -> list[str]:
    cells = [row[-1] for title in ("Defaults", "Limits") for row in rows(title)]
    return [
        name
        for cell in cells
        for name in re.findall(r"`([\w.]+)(?:: \w+)?`", cell)
        if not name.isupper()
    ]


@pytest.mark.parametrize("option", named_options())
def test_every_option_that_the_policy_names_exists(option: str) -> None:
    assert exists(option)


def test_every_flag_that_the_policy_names_exists() -> None:
    flags = set(re.findall(r"`--([\w-]+)`", section("Limits") + section("Defaults")))
    assert {"host", "memory-budget", "request-memory"} <= flags <= {flag.name for flag in FLAGS}


def test_an_option_that_does_not_exist_is_found() -> None:
    assert not exists("frontends.http.no_such_option")
    assert not exists("control.no_such_option")
    assert not exists("no_such_option")


@pytest.mark.parametrize(
    ("what", "option", "expected"),
    [
        ("time for the head", "frontends.http.head_timeout_s", "60 s"),
        ("time without progress", "frontends.http.body_timeout_s", "300 s"),
        ("idle connections", "frontends.http.keep_alive_s", "75 s"),
        ("head of a request", "frontends.http.max_head_size", "64 KiB"),
        ("head of a request", "frontends.http.max_headers", "1,000 headers"),
        ("JSON, JSON tensors", "frontends.http.max_input_size", "64 MiB"),
        ("unpacked size", "frontends.grpc.max_decompressed_size", "64 MiB"),
        ("loads at a time", "control.threads", "4,"),
    ],
)
def test_the_documented_limits_match_the_code(what: str, option: str, expected: str) -> None:
    [limit] = [row[1] for row in rows("Limits") if row[0].startswith(what)]
    assert expected in limit
    section_name, plugin, name = (
        option.split(".") if option.startswith("frontends") else ("", "", "threads")
    )
    kind: Any = options(section_name, plugin) if plugin else fields(ServerConfig)["control"].type
    amount, _, unit = expected.replace(",", "").partition(" ")
    assert fields(kind)[name].default == int(amount) * {"KiB": 1 << 10, "MiB": 1 << 20}.get(unit, 1)


def test_the_documented_defaults_match_the_code() -> None:
    defaults = ServerConfig()
    stated = {row[0]: row[1] for row in rows("Defaults")}
    assert stated["address"].startswith(defaults.host)
    assert stated["encryption"] == "off"
    assert not any(options("frontends", name)().tls.on for name in ("http", "grpc"))
    assert stated["authentication"].startswith("off") is not bool(defaults.auth)
    assert stated["client shared memory"].startswith("off") is not defaults.allow_client_shm
    assert stated["loading over the network"].startswith("off") is (defaults.control.mode == "none")


def test_the_tests_that_the_policy_names_exist() -> None:
    named = re.findall(
        r"`([\w/.-]+)`", section("What the tests cover").partition("Dependencies")[0]
    )
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
