"""Manifests for KServe and Azure, the systemd unit, and the compose file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tritonpy_serve.command import FLAGS

from .kubernetes import ROOT, check_custom, documents, pods, restricted_problems

DEPLOY = ROOT / "deploy"
KSERVE = sorted((DEPLOY / "kserve").glob("*.yaml"))


def load(path: Path) -> list[dict[str, Any]]:
    return documents(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", KSERVE, ids=lambda path: path.stem)
def test_manifests_of_kserve_fit_their_closed_schemas(path: Path) -> None:
    found = load(path)
    assert found
    for document in found:
        assert check_custom(document) == []
    for name, pod in pods(found):
        assert restricted_problems(name, pod) == []


def test_examples_use_runtimes_and_formats_that_exist() -> None:
    manifests = [document for path in KSERVE for document in load(path)]
    formats = {
        each["metadata"]["name"]: {form["name"] for form in each["spec"]["supportedModelFormats"]}
        for each in manifests
        if each["kind"].endswith("ServingRuntime")
    }
    models = [
        each["spec"]["predictor"]["model"]
        for each in manifests
        if each["kind"] == "InferenceService"
    ]
    assert len(models) == 3
    for model in models:
        assert model["modelFormat"]["name"] in formats[model["runtime"]]


def test_runtimes_pass_flags_that_exist() -> None:
    known = {flag.name for flag in FLAGS} | {"model-name"}
    for path in KSERVE:
        for name, pod in pods(load(path)):
            flags = [each for each in pod["containers"][0]["args"] if each.startswith("--")]
            assert {each[2:].partition("=")[0] for each in flags} <= known, name


def test_a_wrong_key_in_a_runtime_is_found_with_its_path() -> None:
    [runtime] = load(DEPLOY / "kserve" / "runtime.yaml")
    runtime["spec"]["containers"][0]["imag"] = "x"
    [problem] = check_custom(runtime)
    assert problem.startswith("ClusterServingRuntime.spec.containers.0: ")
    assert "'imag' was unexpected" in problem


def test_azures_deployment_has_the_routes_of_the_server() -> None:
    [deployment] = load(DEPLOY / "azureml" / "deployment.yml")
    routes = deployment["environment"]["inference_config"]
    assert routes["liveness_route"] == {"path": "/v2/health/live", "port": 8000}
    assert routes["readiness_route"] == {"path": "/v2/health/ready", "port": 8000}
    assert set(routes) == {"liveness_route", "readiness_route", "scoring_route"}


def test_the_compose_file_refers_to_files_that_exist() -> None:
    folder = DEPLOY / "docker"
    compose = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert (folder / source).exists(), f"{name}: {source}"
    build = compose["services"]["tritonpy"]["build"]
    assert (folder / build["context"] / build["dockerfile"]).exists()


def test_systemd_finds_no_mistake_in_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: apt install systemd")
    unit = tmp_path / "tritonpy.service"
    text = (DEPLOY / "systemd" / "tritonpy.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/tritonpy/bin/tritonpy", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "tritonpy.service:" not in done.stderr, done.stderr
