"""The page of the traffic plugin: its commands work on a server that they set up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, TIMEOUT_S, Serve
from tritonpy.config import decode_options
from tritonpy_traffic.spec import RouteSpec

PAGE = (ROOT / "plugins" / "traffic" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def run(commands: str, folder: Path, port: int) -> list[Any]:
    """Run a block; return each line of its output as JSON."""
    commands = commands.replace("localhost:8000", f"127.0.0.1:{port}").replace(
        "curl -s", "curl -s -w '\\n'"
    )
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def test_a_canary_goes_from_start_to_promotion(serve: Serve, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    _install, set_up, _serve, start, hundred, rest, end, _shadow = [
        code for kind, code in BLOCKS if kind == "sh"
    ]
    assert _serve == "tritonpy serve --config server.yaml\n"
    run(set_up, tmp_path, 0)
    (yaml,) = [code for kind, code in BLOCKS if kind == "yaml"]
    (tmp_path / "server.yaml").write_text(yaml)
    with serve(f"--config={tmp_path / 'server.yaml'}") as served:
        port = served.ports["http"]
        (started,) = run(start, tmp_path, port)
        assert (started["canary"]["state"], started["canary"]["share"], started["warnings"]) == (
            "running",
            0.1,
            [],
        )
        *_, running = run(hundred, tmp_path, port)
        assert running["canary"]["state"] == "running"
        assert running["canary"]["failed_share"] == 0
        *_, promoted = run(rest, tmp_path, port)
        assert promoted["canary"]["state"] == "promoted"
        assert [target["version"] for target in promoted["route"]["targets"]] == [2]
        assert sum(target["failures"] for target in promoted["statistics"]["targets"]) == 0
        assert sum(target["requests"] for target in promoted["statistics"]["targets"]) == 1100
        too_late = run(end, tmp_path, port)
        assert [response["error"] for response in too_late] == [
            "route 'digits' has no live canary"
        ] * 2
        run(
            start.replace('"version": 2', '"version": 1').replace(
                '"version": 1}]', '"version": 2}]', 1
            ),
            tmp_path,
            port,
        )
        promote, roll_back = end.splitlines()
        (rolled_back,) = run(roll_back, tmp_path, port)
        assert rolled_back["canary"]["state"] == "rolled back"
        run(start, tmp_path, port)
        (again,) = run(promote, tmp_path, port)
        assert [target["version"] for target in again["route"]["targets"]] == [2]
        kept = json.loads((tmp_path / "routes.json").read_text())
        assert kept["routes"]["digits"]["spec"]["targets"] == again["route"]["targets"]


def test_the_shadow_of_the_page_is_a_route() -> None:
    command = [code for kind, code in BLOCKS if kind == "sh"][-1]
    _, document, _ = command.split("'")
    assert list(decode_options(RouteSpec, json.loads(document), "").problems()) == []
