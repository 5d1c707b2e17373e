"""The installer and the release of this checkout: selected distributions and wheel metadata."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tomllib
import venv
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import distributions  # noqa: E402
import install  # noqa: E402
import release  # noqa: E402

sys.path.remove(str(ROOT / "tools"))
ALL = distributions.read_distributions()


@pytest.mark.parametrize(
    "name", ["torch", "backend_torch", "tritonpy-backend-torch", "tritonpy_backend_torch"]
)
def test_a_plugin_is_found_by_each_of_its_names(name: str) -> None:
    assert distributions.find(name, ALL) == (ALL["tritonpy-backend-torch"], "")


def test_extras_are_kept() -> None:
    assert distributions.find("cloud[s3,gs]", ALL) == (ALL["tritonpy-repo-cloud"], "[s3,gs]")
    assert distributions.find("tritonpy[watch]", ALL) == (ALL["tritonpy"], "[watch]")


@pytest.mark.parametrize("name", ["traffik", "", "a b", "[s3]"])
def test_an_unknown_name_is_refused_with_a_suggestion(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        install.main([name])
    assert re.search(
        r"no plugin '.*', (did you mean 'traffic'|available: analyzer, api, api_keys, )",
        capsys.readouterr().err,
    )


def test_short_names_of_distributions_are_unique() -> None:
    names = [each.short_name for each in ALL.values()]
    assert sorted(set(names)) == sorted(names)


def test_required_sibling_packages_are_installed_with_a_plugin() -> None:
    names = {each.name for each in distributions.with_siblings(["tritonpy-frontend-grpc"], ALL)}
    assert {"tritonpy", "tritonpy-protos", "tritonpy-http2", "tritonpy-frontend-grpc"} <= names
    assert "tritonpy-backend-onnx" not in names


@pytest.mark.parametrize(
    "extra", ["tritonpy[cuda]", "tritonpy[watch,gpu]", "tritonpy-metrics-prometheus[gpu]==0.1.0"]
)
def test_sibling_packages_of_extras_are_installed_with_them(extra: str) -> None:
    names = {each.name for each in distributions.with_siblings([extra], ALL)}
    assert "tritonpy-device-cuda" in names
    plain = {each.name for each in distributions.with_siblings([extra.partition("[")[0]], ALL)}
    assert names - plain == {"tritonpy-device-cuda"}


def test_the_extras_of_the_core_pin_their_siblings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "core"))
    from sibling_dependencies import SiblingDependencies

    document = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text(encoding="utf-8"))
    hook = SiblingDependencies(
        str(ROOT / "core"), document["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    )
    found: dict[str, Any] = {"version": "0.1.0"}
    hook.update(found)
    assert found["optional-dependencies"]["gpu"] == [
        f"tritonpy-device-cuda[gpu] @ {(ROOT / 'plugins' / 'device_cuda').as_uri()}"
    ]
    monkeypatch.setenv("TRITONPY_PLAIN_DEPENDENCIES", "1")
    hook.update(found)
    assert found["optional-dependencies"] == {
        "cuda": ["tritonpy-device-cuda[cuda]==0.1.0"],
        "gpu": ["tritonpy-device-cuda[gpu]==0.1.0"],
        "watch": ["watchfiles>=1.0"],
    }


def installed(distribution: Any, **changes: Any) -> dict[str, Any]:
    """Return the metadata of an up-to-date installation of `distribution`, with `changes`."""
    folder = {"url": distribution.folder.as_uri(), "dir_info": {}}
    found = {
        "version": distribution.version,
        "by_folder": False,
        "origin": folder,
        "time": time.time() + 60,
    }
    return found | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "0.0.1"},
        {"by_folder": True},
        {"origin": {}},
        {"origin": {"url": "file:///elsewhere/backend_onnx", "dir_info": {}}},
        {"time": 0.0},
    ],
    ids=[
        "version",
        "siblings by folder",
        "from an index",
        "another checkout",
        "older than its source",
    ],
)
def test_distributions_that_differ_from_the_checkout_are_rebuilt(changes: dict[str, Any]) -> None:
    onnx = ALL["tritonpy-backend-onnx"]
    assert not install.is_stale(onnx, installed(onnx))
    assert install.is_stale(onnx, installed(onnx, **changes))
    assert install.is_stale(onnx, None)


def test_an_editable_installation_is_rebuilt_only_when_its_pyproject_changes(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "module.py").touch()
    os.utime(tmp_path / "pyproject.toml", (100, 100))
    plugin = distributions.Distribution("tritonpy-x", "1", tmp_path, ())
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    assert not install.is_stale(plugin, installed(plugin, origin=origin, time=101))
    assert install.is_stale(plugin, installed(plugin, origin=origin, time=99))


@pytest.mark.parametrize("distribution", ALL.values(), ids=lambda each: each.name)
def test_every_project_has_its_metadata_and_pins_its_siblings(distribution: Any) -> None:
    project = tomllib.loads((distribution.folder / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert project["authors"] == [{"name": "tritonpy developers"}]
    assert project["description"]
    assert {"inference", "triton"} <= set(project["keywords"])
    assert "Typing :: Typed" in project["classifiers"]
    assert not {"license", "license-files"} & project.keys()
    extras = [text for texts in project.get("optional-dependencies", {}).values() for text in texts]
    for requirement in [*distribution.requirements, *extras]:
        sibling = ALL.get(distributions.requirement_name(requirement))
        assert sibling is None or requirement.endswith(f"=={sibling.version}"), requirement


def metadata(*requirements: str, **fields: str) -> Message:
    message = Message()
    for name in release.REQUIRED:
        message[name] = fields.get(name.replace("-", "_"), "something")
    for requirement in requirements:
        message["Requires-Dist"] = requirement
    return message


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("tritonpy-protos @ file:///somewhere/protos", "refers to a location"),
        ("tritonpy-protos", "must require tritonpy-protos=="),
        ("tritonpy-protos>=0.1", "must require tritonpy-protos=="),
        ('tritonpy-protos==9.9; extra == "test"', "must require tritonpy-protos=="),
    ],
)
def test_a_wheel_that_does_not_pin_its_siblings_is_refused(requirement: str, says: str) -> None:
    core = ALL["tritonpy"]
    release.check_metadata(metadata(f"tritonpy-protos=={core.version}", "numpy>=2"), core, ALL)
    with pytest.raises(release.BadWheel, match=says):
        release.check_metadata(metadata(requirement), core, ALL)


def test_a_wheel_without_a_field_is_refused() -> None:
    with pytest.raises(release.BadWheel, match="has no Keywords"):
        release.check_metadata(metadata(Keywords=""), ALL["tritonpy"], ALL)


def test_the_wheels_of_the_core_and_a_plugin_can_be_released(tmp_path: Path) -> None:
    chosen = {name: ALL[name] for name in ("tritonpy", "tritonpy-backend-onnx")}
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "tritonpy-0.0.1-py3-none-any.whl").touch()
    wheels = release.build(build_python(tmp_path), chosen, tmp_path / "dist")
    assert wheels.keys() == chosen.keys()
    for name, wheel in wheels.items():
        found = release.read_metadata(wheel)
        release.check_metadata(found, ALL[name], ALL)
        assert found["License"] is found["License-Expression"] is None
    core = release.read_metadata(wheels["tritonpy"]).get_all("Requires-Dist")
    assert core is not None
    assert f"tritonpy-protos=={ALL['tritonpy'].version}" in core


def build_python(folder: Path) -> Path:
    """Return the interpreter of an empty environment that has only the build backend."""
    venv.create(folder / "environment", with_pip=True)
    return folder / "environment" / "bin" / "python"


def test_distributions_of_different_versions_are_not_released(tmp_path: Path) -> None:
    mixed = {
        "a": distributions.Distribution("a", "1", tmp_path, ()),
        "b": distributions.Distribution("b", "2", tmp_path, ()),
    }
    with pytest.raises(release.BadWheel, match="different versions: 1, 2"):
        release.build(Path(sys.executable), mixed, tmp_path)


def test_the_frameworks_that_are_only_resolved_exist() -> None:
    assert ALL.keys() >= release.FRAMEWORKS


def test_pip_is_installed_into_an_environment_without_it(tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=False)
    python = tmp_path / "bin" / "python"
    install._ensure_pip(python)
    subprocess.run([str(python), "-m", "pip", "--version"], check=True, capture_output=True)
