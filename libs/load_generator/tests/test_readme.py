"""The example of README works."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tritonpy_testing import running_server

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "libs" / "load_generator" / "README.md").read_text(encoding="utf-8")


def test_the_example_measures_a_model(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    namespace = {"__name__": "example"}
    exec(example, namespace)  # noqa: S102  the project's own example
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    with running_server(config) as server:
        snapshot = asyncio.run(namespace["measure"](server.http, "add_sub"))
    assert snapshot.failed == 0
    assert snapshot.succeeded > 10
    assert "p99" in capsys.readouterr().out
