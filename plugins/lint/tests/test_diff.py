"""The command diff: what a load would change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritonpy_lint
from tritonpy.cli import main
from tritonpy_lint.diff_command import DiffCommand
from tritonpy_lint.linting import LintOptions, lint
from tritonpy_lint.repository_diff import Action, ServedModel, compare
from tritonpy_testing import CommandContract, running_server

TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
BASE = f'backend: "python"\nmax_batch_size: 8\ndynamic_batching {{ }}\n{TENSORS}'
ENSEMBLE = (
    f'platform: "ensemble" max_batch_size: 8\n{TENSORS}'
    'ensemble_scheduling { step { model_name: "member" model_version: -1\n'
    'input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }\n'
)


class TestDiff(CommandContract):
    plugin = tritonpy_lint
    plugin_class = DiffCommand
    name = "diff"
    arguments = ("--header", "wrong")
    status = 1


@pytest.fixture
def served(repository) -> Iterator[str]:
    """The address of a server with three models."""
    repository.add("member")
    repository.add("pipeline", ENSEMBLE)
    repository.add("single")
    yaml = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    with running_server(yaml) as server:
        yield server.address("http")


def changes(repository, address: str, capsys) -> dict[str, tuple[str, list[str]]]:
    main(["diff", str(repository.path), "--server", address, "--json"])
    found = json.loads(capsys.readouterr().out)
    return {each["name"]: (each["action"], each["details"]) for each in found}


def test_nothing_changes_at_first(repository, served: str, capsys) -> None:
    assert main(["diff", str(repository.path), "--server", served]) == 0
    assert capsys.readouterr().out == (
        "0 to add, 0 to change, 0 to update in place, 0 to remove, 3 without a change.\n"
    )


def test_every_kind_of_change_is_listed(repository, served: str, capsys) -> None:
    repository.add("new")
    repository.add("single", f"{BASE}instance_group {{ count: 2 }}\n")
    text = BASE.replace("dynamic_batching { }", "response_cache { enable: true }")
    repository.add("member", text.replace("max_batch_size: 8", "max_batch_size: 16"))
    found = changes(repository, served, capsys)
    assert found["new"] == ("add", ["backend python", "versions 1", "instances 1"])
    assert found["single"] == ("update in place", ["instances 1 -> 2"])
    action, details = found["member"]
    assert action == "change"
    assert "~ max_batch_size: 8 -> 16" in details
    assert "+ response_cache.enable: true" in details
    assert main(["diff", str(repository.path), "--server", served]) == 2
    assert "rebuilds pipeline" in capsys.readouterr().out


def test_a_broken_model_would_change_nothing(repository, served: str, capsys) -> None:
    repository.add("single", "max_batch_size: x")
    action, details = changes(repository, served, capsys)["single"]
    assert action == "none"
    assert "its load would fail" in details[0]


def test_versions_and_removed_models(repository) -> None:
    repository.add("m", f"{BASE}version_policy {{ all {{ }} }}\n", **{"2/model.py": "class A: 1"})
    repository.add("m", f"{BASE}version_policy {{ all {{ }} }}\n", **{"2/model.py": ""})
    (repository.path / "m" / "2" / "model.py").write_bytes(
        (repository.path / "m" / "1" / "model.py").read_bytes()
    )
    local = {model.name: model for model in lint(LintOptions([str(repository.path)])).models}
    config = local["m"].config
    current = {
        "m": ServedModel(frozenset({1, 3}), config),
        "gone": ServedModel(frozenset(), config),
    }
    found = {each.name: each for each in compare(local, current)}
    assert found["m"].action is Action.UPDATE
    assert found["m"].details == ["+ versions 2", "- versions 3"]
    assert found["gone"].action is Action.REMOVE


def test_an_unreachable_server_is_an_error(repository, tmp_path: Path, capsys) -> None:
    repository.add("m")
    assert main(["diff", str(repository.path), "--server", "127.0.0.1:1"]) == 1
    assert "cannot be asked" in capsys.readouterr().err
