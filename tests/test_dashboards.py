"""The dashboards of examples/grafana show metrics that the server has."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

METRICS = (
    ROOT / "plugins/backend_python/tritonpy_backend_python/worker/tritonpy_text_backend/metrics.py"
)
FOLDER = ROOT / "examples" / "grafana"
USED = re.compile(r"\$\{prefix\}(\w+)")


def known_names() -> set[str]:
    """Return the names of the metrics of language models, without prefix."""
    tree = ast.parse(METRICS.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def expressions(dashboard: Any) -> list[str]:
    """Return all queries of a dashboard."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_dashboard_queries_metrics_that_exist(path: Path) -> None:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    known, found = known_names(), set()
    for expression in expressions(dashboard):
        names = USED.findall(expression)
        assert names, expression
        found |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert found <= known
    # Every panel says what it is for, and no two have the same place.
    assert all(panel["description"] for panel in dashboard["panels"])
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}
    assert len(places) == len(dashboard["panels"])


def test_the_dashboard_of_language_models_has_all_their_metrics() -> None:
    dashboard = json.loads((FOLDER / "language_models.json").read_text(encoding="utf-8"))
    used = {re.sub(r"_bucket$", "", each) for each in USED.findall(json.dumps(dashboard))}
    families = {name for name in known_names() if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name)}
    missing = {
        name
        for name in families
        if name.endswith(("_total", "_seconds", "_perc", "_running", "_waiting", "_tokens"))
        and name not in used
        and f"{name}_sum" not in used
    }
    assert missing == set()
