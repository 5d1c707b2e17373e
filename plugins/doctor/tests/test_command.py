"""The commands doctor and completion."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritonpy_doctor
from tritonpy.cli import main
from tritonpy.config import ServerConfig
from tritonpy.plugins import make_plugin_manager
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_doctor.bundle import REMOVED, redacted
from tritonpy_doctor.command import DoctorCommand
from tritonpy_doctor.completion import SHELLS, CompletionCommand
from tritonpy_doctor.examination import examine
from tritonpy_testing import CommandContract


class TestDoctor(CommandContract):
    plugin = tritonpy_doctor
    plugin_class = DoctorCommand
    name = "doctor"
    arguments = ("--check", "python")


class TestCompletion(CommandContract):
    plugin = tritonpy_doctor
    plugin_class = CompletionCommand
    name = "completion"
    arguments = ("bash",)


class Fine(DoctorCheck):
    title = "Fine"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        yield CheckResult(CheckStatus.OK, "good")


class Raising(DoctorCheck):
    title = "Raising"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        raise RuntimeError("on purpose")
        yield


class Hanging(DoctorCheck):
    title = "Hanging"
    released = threading.Event()

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        yield CheckResult(CheckStatus.OK, "started")
        self.released.wait()


def test_a_check_that_raises_or_hangs_does_not_stop_the_others() -> None:
    checks = {"hanging": Hanging(), "raising": Raising(), "fine": Fine()}
    try:
        sections = examine(checks, DoctorContext(ServerConfig()), limit_s=0.2)
    finally:
        Hanging.released.set()
    found = {section.name: section for section in sections}
    assert found["fine"].status is CheckStatus.OK
    assert found["raising"].results[0].text == "the check itself failed: RuntimeError: on purpose"
    assert [each.text for each in found["hanging"].results] == ["started", "no result within 0.2 s"]


def test_the_report_is_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--check", "python", "--check", "clock"])
    assert status == 0
    text = capsys.readouterr().out
    assert "Python\n  ok    Python 3." in text
    assert "\x1b" not in text
    assert main(["doctor", "--check", "python", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in report["checks"]] == ["python"]
    assert report["counts"]["fail"] == 0


def test_exit_statuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("repositories: [{url: none}]\n")
    assert main(["doctor", "--server", str(file), "--check", "repositories"]) == 1
    assert "-> Create the folder" in capsys.readouterr().out
    file.write_text("hots: 0.0.0.0\n")
    assert main(["doctor", "--server", str(file)]) == 1
    assert "did you mean 'host'" in capsys.readouterr().err
    assert main(["doctor", "--server", str(tmp_path / "absent.yaml")]) == 2
    assert main(["doctor", "--check", "none"]) == 2
    assert main(["doctor", "--nonsense"]) == 2


def test_every_check_is_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert len(report["checks"]) == len(make_plugin_manager().table("tritonpy_doctor_checks"))


SECRETS = """auth:
  api_keys:
    key_file: keys.toml
    password: hunter2
cache: {redis: {host: h}}
repositories:
  - url: s3://user:hunter2@host/bucket
    options:
      secret_access_key: hunter2
"""


def test_a_bundle_has_no_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "hunter2" not in redacted(SECRETS)
    assert f"password: {REMOVED}" in redacted(SECRETS)
    file = tmp_path / "server.yaml"
    file.write_text("id: shared\nrequest_memory: 1GiB\n")
    target = tmp_path / "report.tar.gz"
    main(["doctor", "--server", str(file), "--check", "python", "--bundle", str(target)])
    with tarfile.open(target) as archive:
        names = {Path(name).name for name in archive.getnames()}
        assert names == {"report.json", "packages.txt", "environment.txt", "server.yaml"}
    assert main(["doctor", "--check", "python", "--bundle", str(tmp_path / "no/such/x.tgz")]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command_and_its_options(shell: str, capsys) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name in make_plugin_manager().table("tritonpy_commands"):
        assert name in script
    assert "http-port" in script


def test_bash_completes_commands_and_options(tmp_path: Path, capsys) -> None:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    main(["completion", "bash"])
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)

    def completed(*words: str) -> list[str]:
        line = " ".join(words)
        code = (
            f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
            f"COMP_CWORD={len(words) - 1}; COMP_LINE={line!r}; _shtab_tritonpy; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert "lint" in completed("tritonpy", "li")
    assert "--http-port" in completed("tritonpy", "serve", "--http-po")
