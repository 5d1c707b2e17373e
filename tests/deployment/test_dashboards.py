"""Dashboards and alerts query metrics that the server has."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tritonpy_testing import running_server

from .kubernetes import CHART, ROOT, documents, render

METRICS = (
    ROOT / "plugins/backend_python/tritonpy_backend_python/worker/tritonpy_text_backend/metrics.py"
)
FOLDER = CHART / "files" / "dashboards"
ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARDS = sorted(FOLDER.glob("*.json"))
WITH_PREFIX = re.compile(r"\$\{prefix\}(\w+)")
# What a server has only with a GPU.
ON_A_GPU = frozenset({"nv_gpu_utilization", "nv_gpu_memory_used_bytes"})
# What a server has only when it refuses requests.
OF_REFUSALS = frozenset({"nv_request_memory_refusals"})


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def expressions(dashboard: Any) -> list[str]:
    """Return all queries of a dashboard."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def names_in(expression: str) -> set[str]:
    """Return the metrics of a PromQL expression. Raises ValueError for invalid PromQL."""
    text = expression.replace("${prefix}", "nv_generation_").replace("$__rate_interval", "1m")
    promql_parser.parse(text)
    return set(re.findall(r"\b(nv_\w+|up)\b(?=\{|\[|\))", text))


@pytest.fixture(scope="module")
def served_names() -> set[str]:
    """The metrics of a server that has served a request."""
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": {"port": 0}},
        "request_memory": "1GiB",
    }
    with running_server(config) as server:
        body = (ROOT / "examples" / "digit.json").read_bytes()
        url = f"http://{server.http}/v2/models/digits/infer"
        urllib.request.urlopen(urllib.request.Request(url, body), timeout=30).close()
        with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as response:
            text = response.read().decode()
    return set(re.findall(r"^(\w+)(?:\{| )", text, re.MULTILINE))


def text_metrics() -> set[str]:
    """Return the names of the metrics of language models, without prefix."""
    tree = ast.parse(METRICS.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_queries_metrics_that_exist(path: Path, served_names: set[str]) -> None:
    generated = {f"nv_generation_{name}" for name in text_metrics()}
    for expression in expressions(load(path)):
        names = names_in(expression)
        assert names, expression
        plain = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
        unknown = {name for name in names if name not in served_names | ON_A_GPU}
        assert not unknown or plain <= generated, expression


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_a_unit_a_purpose_and_a_place_of_its_own(path: Path) -> None:
    dashboard = load(path)
    assert dashboard["schemaVersion"] >= 39
    for panel in dashboard["panels"]:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}
    assert len(places) == len(dashboard["panels"])


def test_the_dashboard_of_language_models_has_all_their_metrics() -> None:
    text = json.dumps(load(FOLDER / "language_models.json"))
    used = {re.sub(r"_bucket$", "", each) for each in WITH_PREFIX.findall(text)}
    families = {name for name in text_metrics() if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name)}
    missing = {
        name
        for name in families
        if name.endswith(("_total", "_seconds", "_perc", "_running", "_waiting", "_tokens"))
        and name not in used
        and f"{name}_sum" not in used
    }
    assert missing == set()


def test_alerts_query_metrics_that_exist_and_say_what_to_do(served_names: set[str]) -> None:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        names = names_in(rule["expr"])
        assert names, rule["alert"]
        assert names <= served_names | OF_REFUSALS | {"up"}, rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")


def test_the_autoscaler_queries_metrics_that_exist(served_names: set[str]) -> None:
    [scaled] = [
        each
        for each in documents(render(CHART.parents[2] / "tests/deployment/values/keda.yaml"))
        if each["kind"] == "ScaledObject"
    ]
    for trigger in scaled["spec"]["triggers"]:
        names = names_in(trigger["metadata"]["query"])
        assert names
        assert names <= served_names


CASES = """
rule_files: [alerts.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'nv_inference_request_success{namespace="n",model="m"}', values: '0+60x30'}
      - {series: 'nv_inference_request_failure{namespace="n",model="m",reason="BACKEND"}', values: '0+20x30'}
      - {series: 'nv_inference_request_failure{namespace="n",model="m",reason="CANCELED"}', values: '0+90x30'}
      - {series: 'nv_inference_queue_duration_us{namespace="n",model="m"}', values: '0+120000000x30'}
      - {series: 'nv_inference_pending_request_count{namespace="n",model="m"}', values: '200x30'}
      - {series: 'nv_request_memory_refusals{namespace="n"}', values: '0+1x30'}
      - {series: 'up{service="release-tritonpy",pod="p"}', values: '0x30'}
    alert_rule_test: &fired
      - {eval_time: 20m, alertname: TritonpyRequestsFail, exp_alerts: [{exp_labels: {severity: critical, namespace: n, model: m}, exp_annotations: {summary: "More than 5 % of the requests of m fail", description: "The log names the error with an id. nv_inference_request_failure has the reasons."}}]}
      - {eval_time: 20m, alertname: TritonpyQueueIsLong, exp_alerts: [{exp_labels: {severity: warning, namespace: n, model: m}, exp_annotations: {summary: "Requests of m wait more than 1 s on average", description: "Add replicas or instances, or lower max_queue_delay_microseconds."}}]}
      - {eval_time: 20m, alertname: TritonpyRequestsArePiling, exp_alerts: [{exp_labels: {severity: warning, namespace: n, model: m}, exp_annotations: {summary: "More than 100 requests of m wait", description: "The queue has not been empty for 10 minutes: the replicas are too few."}}]}
      - {eval_time: 20m, alertname: TritonpyRefusesRequestsForMemory, exp_alerts: [{exp_labels: {severity: warning, namespace: n}, exp_annotations: {summary: "Servers in n refuse requests for lack of memory", description: "Raise the memory limit of the container, or --request-memory."}}]}
      - {eval_time: 20m, alertname: TritonpyIsDown, exp_alerts: [{exp_labels: {severity: critical, service: release-tritonpy, pod: p}, exp_annotations: {summary: "Prometheus cannot read the metrics of p", description: "The pod does not respond on its metrics port."}}]}
  - interval: 1m
    input_series:
      - {series: 'nv_inference_request_success{namespace="n",model="m"}', values: '0+600x30'}
      - {series: 'nv_inference_request_failure{namespace="n",model="m",reason="BACKEND"}', values: '0+1x30'}
      - {series: 'nv_inference_queue_duration_us{namespace="n",model="m"}', values: '0+600000x30'}
      - {series: 'nv_inference_pending_request_count{namespace="n",model="m"}', values: '3x30'}
      - {series: 'nv_request_memory_refusals{namespace="n"}', values: '0x30'}
      - {series: 'up{service="release-tritonpy",pod="p"}', values: '1x30'}
    alert_rule_test:
      - {eval_time: 20m, alertname: TritonpyRequestsFail, exp_alerts: []}
      - {eval_time: 20m, alertname: TritonpyQueueIsLong, exp_alerts: []}
      - {eval_time: 20m, alertname: TritonpyRequestsArePiling, exp_alerts: []}
      - {eval_time: 20m, alertname: TritonpyRefusesRequestsForMemory, exp_alerts: []}
      - {eval_time: 20m, alertname: TritonpyIsDown, exp_alerts: []}
"""


def test_promtool_fires_each_alert_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool: apt install prometheus")
    shutil.copy(ALERTS, tmp_path / "alerts.yaml")
    (tmp_path / "test.yaml").write_text(CASES, encoding="utf-8")
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "test.yaml"]):
        done = subprocess.run(
            ["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
