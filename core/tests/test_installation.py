from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest

from tritonpy.installation import install_command


class Installed:
    def __init__(self, origin):
        self._origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._origin


@pytest.fixture
def installed_from(monkeypatch):
    def install(url=None, **info):
        origin = None if url is None else json.dumps({"url": url, **info})
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(origin))

    return install


@pytest.fixture
def checkout(tmp_path):
    for project in ("core", "plugins/backend_torch", "plugins/repo_cloud"):
        (tmp_path / project).mkdir(parents=True)
        (tmp_path / project / "pyproject.toml").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "install.py").touch()
    return tmp_path


def test_an_installation_from_an_index_uses_pip_and_quotes_extras(installed_from):
    installed_from()
    assert install_command("tritonpy-backend-torch") == "pip install tritonpy-backend-torch"
    assert install_command("tritonpy[gpu]") == "pip install 'tritonpy[gpu]'"
    assert (
        install_command("tritonpy-bench", reinstall=True)
        == "pip install --force-reinstall tritonpy-bench"
    )


def test_an_installation_from_a_checkout_uses_its_installer(installed_from, checkout, monkeypatch):
    installed_from((checkout / "core").as_uri(), dir_info={})
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    script = checkout / "tools" / "install.py"
    assert (
        install_command("tritonpy-backend-torch")
        == f"/usr/bin/python3 {script} tritonpy-backend-torch"
    )
    assert (
        install_command("tritonpy-repo-cloud[s3]")
        == f"/usr/bin/python3 {script} 'tritonpy-repo-cloud[s3]'"
    )
    assert install_command("tritonpy[gpu]") == f"/usr/bin/python3 {script} 'tritonpy[gpu]'"
    reinstall = install_command("tritonpy-backend-torch", reinstall=True)
    assert reinstall == f"/usr/bin/python3 {script} --force-reinstall tritonpy-backend-torch"


def test_the_command_uses_relative_paths_in_the_current_folder(
    installed_from, checkout, monkeypatch
):
    installed_from((checkout / "core").as_uri(), dir_info={})
    monkeypatch.chdir(checkout)
    monkeypatch.setattr(sys, "executable", str(checkout / ".venv" / "bin" / "python"))
    assert (
        install_command("tritonpy-backend-torch")
        == ".venv/bin/python tools/install.py tritonpy-backend-torch"
    )


def test_a_distribution_outside_the_checkout_is_installed_by_pip(installed_from, checkout):
    installed_from((checkout / "core").as_uri(), dir_info={"editable": True})
    assert install_command("tritonpy-backend-shout") == "pip install tritonpy-backend-shout"


def test_a_deleted_checkout_is_not_used(installed_from, checkout):
    installed_from((checkout / "core").as_uri(), dir_info={})
    (checkout / "tools" / "install.py").unlink()
    assert install_command("tritonpy-backend-torch") == "pip install tritonpy-backend-torch"


def test_an_installation_from_wheels_uses_their_folder(installed_from, tmp_path):
    installed_from((tmp_path / "tritonpy-0.1.0-py3-none-any.whl").as_uri(), archive_info={})
    assert (
        install_command("tritonpy-bench") == f"pip install --find-links {tmp_path} tritonpy-bench"
    )


def test_a_server_that_is_not_installed_uses_pip(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert install_command("tritonpy-bench") == "pip install tritonpy-bench"


def test_in_an_image_the_command_builds_another_image(monkeypatch):
    monkeypatch.setenv("TRITONPY_IMAGE", "1")
    assert install_command("tritonpy-backend-torch") == (
        "docker build --file deploy/docker/Dockerfile --build-arg PLUGINS=tritonpy-backend-torch ."
    )
