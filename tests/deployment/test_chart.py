"""The Helm chart: rendered with many values, and checked against the schemas of Kubernetes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tritonpy.config import decode_server_config

from .kubernetes import (
    CHART,
    HERE,
    check_custom,
    custom_schemas,
    documents,
    helm,
    pods,
    render,
    restricted_problems,
)

VALUES = sorted((HERE / "values").glob("*.yaml"))
GOLDEN = HERE / "golden"
VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
each_values = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)


def test_there_are_many_sets_of_values() -> None:
    assert len(VALUES) >= 12


@each_values
def test_helm_finds_no_mistake(values: Path) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(values))
    assert done.returncode == 0, done.stdout + done.stderr


@each_values
def test_the_manifests_are_those_of_the_golden_file(values: Path) -> None:
    """Set TRITONPY_UPDATE_GOLDEN to write the files, and read the difference."""
    rendered = render(values)
    golden = GOLDEN / f"{values.stem}.yaml"
    if os.environ.get("TRITONPY_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(_without_long_data(rendered), encoding="utf-8")
    assert _without_long_data(rendered) == golden.read_text(encoding="utf-8")


def _without_long_data(text: str) -> str:
    """Leave out the dashboards, which have a test of their own."""
    kept = [each for each in text.split("---\n") if "tritonpy-dashboards" not in each]
    return "---\n".join(kept)


@each_values
@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_fit_the_schemas_of_kubernetes(values: Path, version: str) -> None:
    custom = custom_schemas()
    known = kubernetes_validate.latest_version()
    if tuple(map(int, version.split("."))) > tuple(map(int, known.split(".")[:2])):
        pytest.skip(f"needs kubernetes-validate with the schemas of Kubernetes {version}")
    manifests = [each for each in documents(render(values)) if each["kind"] not in custom]
    if (values.stem, version) == ("oci_volume", "1.30"):  # volumes of images came with 1.31
        with pytest.raises(kubernetes_validate.ValidationError, match="image"):
            validate(manifests, version)
    else:
        validate(manifests, version)


def validate(manifests: list[dict[str, Any]], version: str) -> None:
    for document in manifests:
        kubernetes_validate.validate(document, version, strict=True)


@each_values
def test_custom_resources_fit_their_closed_schemas(values: Path) -> None:
    for document in documents(render(values)):
        if document["kind"] in custom_schemas():
            assert check_custom(document) == []


@each_values
def test_pods_fulfill_the_restricted_profile(values: Path) -> None:
    found = list(pods(documents(render(values))))
    assert len(found) == 2  # the server and the test
    assert [text for name, pod in found for text in restricted_problems(name, pod)] == []


@each_values
def test_the_configuration_is_valid_and_images_have_a_version(values: Path) -> None:
    manifests = documents(render(values))
    [config] = [
        each["data"]["server.yaml"]
        for each in manifests
        if each["kind"] == "ConfigMap" and "server.yaml" in each["data"]
    ]
    decoded = decode_server_config(yaml.safe_load(config))
    assert decoded.host == "0.0.0.0"
    assert decoded.repositories
    for name, pod in pods(manifests):
        for container in pod["containers"]:
            image = container["image"]
            assert ":" in image, name
            assert not image.endswith(":latest"), name


@each_values
def test_annotations_and_labels_are_texts(values: Path) -> None:
    for document in documents(render(values)):
        for part in ("annotations", "labels"):
            for key, value in (document["metadata"].get(part) or {}).items():
                assert isinstance(value, str), key


@each_values
def test_the_grace_period_covers_the_shutdown(values: Path) -> None:
    [server] = [pod for name, pod in pods(documents(render(values))) if "Deployment" in name]
    sleep = server["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    [config] = [
        yaml.safe_load(each["data"]["server.yaml"])
        for each in documents(render(values))
        if each["kind"] == "ConfigMap" and "server.yaml" in each["data"]
    ]
    assert server["terminationGracePeriodSeconds"] >= sleep + config["exit_timeout_s"]


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ("autoscaling.tpe=keda", "at '/autoscaling': additional properties 'tpe' not allowed"),
        ("imag.tag=1", "additional properties 'imag' not allowed"),
        ("ports.http=0", "at '/ports/http'"),
        ("models[0].name=a", "at '/models/0'"),
        ("models[0].name=a,models[0].url=x,models[0].hostPath=/y", "at '/models/0'"),
        ("autoscaling.type=kedda", "at '/autoscaling/type'"),
        ("autoscaling.type=keda", "autoscaling.prometheusUrl is required"),
        ("autoscaling.type=hpa,autoscaling.minReplicas=0", "needs autoscaling.type: keda"),
        ("gateway.enabled=true", "gateway.parentRefs is required"),
    ],
)
def test_wrong_values_fail_with_their_path(assignment: str, text: str) -> None:
    done = helm("template", "release", str(CHART), "--set", assignment)
    assert done.returncode != 0
    assert text in done.stderr


def test_every_value_is_in_the_schema_and_has_its_type() -> None:
    """The defaults are complete, so that no key of the schema is missing in values.yaml."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

    def compare(schema: dict, values: dict, path: str) -> None:
        for key, part in schema.get("properties", {}).items():
            if f"{path}{key}" in {"global", "resources.requests", "resources.limits"}:
                continue
            assert key in values, f"{path}{key}"
            if part.get("properties"):
                assert part["additionalProperties"] is False, f"{path}{key}"
                compare(part, values[key], f"{path}{key}.")

    assert schema["additionalProperties"] is False
    compare(schema, values, "")


def test_the_checks_find_mistakes() -> None:
    [scaled] = [
        each
        for each in documents(render(HERE / "values" / "keda.yaml"))
        if each["kind"] == "ScaledObject"
    ]
    scaled["spec"]["maxReplicas"] = 3
    scaled["spec"]["triggers"][0]["metadata"]["threshold"] = 8
    problems = check_custom(scaled)
    assert any("'maxReplicas' was unexpected" in each for each in problems)
    assert any(
        each.startswith("ScaledObject.spec.triggers.0.metadata.threshold") for each in problems
    )
    [(name, pod)] = [each for each in pods(documents(render(VALUES[0]))) if "Deployment" in each[0]]
    pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = False
    assert restricted_problems(name, pod) == [f"{name}, container server: readOnlyRootFilesystem"]


def test_the_vendored_schemas_are_unchanged() -> None:
    import hashlib

    for kind, source in custom_schemas().items():
        content = (HERE / "crds" / f"{kind}.json").read_bytes()
        assert hashlib.sha256(content).hexdigest() == source["sha256"], kind
        assert source["license"]
        assert source["source"].startswith("https://github.com/")


def test_the_dashboards_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/dashboards.py", "--check"],
        cwd=CHART.parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
