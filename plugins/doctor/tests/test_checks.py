"""Checks find what is wrong with a machine, an installation or a server.yaml."""

from __future__ import annotations

import datetime as dt
import os
import socket
from pathlib import Path

import pytest
import trustme

import tritonpy_doctor
from tritonpy.config import decode_server_config
from tritonpy.plugins import make_plugin_manager
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_doctor.checks import installation, machine, server
from tritonpy_testing import DoctorCheckContract

TABLE = make_plugin_manager(only="doctor").table("tritonpy_doctor_checks")


class Base(DoctorCheckContract):
    __test__ = False
    plugin = tritonpy_doctor


def contract(name: str) -> type[DoctorCheckContract]:
    attributes = {
        "__test__": True,
        "__module__": __name__,
        "plugin_class": TABLE[name].load(),
        "name": name,
    }
    return type(f"Test{name.title().replace('-', '')}", (Base,), attributes)


globals().update({f"Test_{name}": contract(name) for name in TABLE})


def run(check: DoctorCheck, raw: object = None, **options: object) -> list[CheckResult]:
    return list(check.run(DoctorContext(decode_server_config(raw or {}), **options)))


def of(results: list[CheckResult], status: CheckStatus) -> list[str]:
    return [each.text for each in results if each.status is status]


def test_a_port_in_use_and_a_wrong_address_are_failures() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        frontends = {"http": {"port": port}, "grpc": {"port": 0}, "metrics": False}
        failed = of(run(server.Ports(), {"frontends": frontends}), CheckStatus.FAIL)
    assert failed == [f"http: 127.0.0.1:{port}: Address already in use"]
    frontends = {"http": {"port": 8000, "host": "192.0.2.1"}, "grpc": False, "metrics": False}
    assert len(of(run(server.Ports(), {"frontends": frontends}), CheckStatus.FAIL)) == 1


def test_a_single_port_is_checked_instead_of_two() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        raw = {"single_port": port, "frontends": {"metrics": False}}
        results = run(server.Ports(), raw)
    assert of(results, CheckStatus.FAIL) == [
        f"HTTP and gRPC: 127.0.0.1:{port}: Address already in use"
    ]
    assert len(results) == 1


def test_wrong_options_of_plugins_are_failures() -> None:
    failed = of(run(server.Configuration(), {"frontends": {"http": {"prt": 1}}}), CheckStatus.FAIL)
    assert len(failed) == 1
    assert "prt" in failed[0]


def test_repositories_are_counted_or_missing(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / ".hidden").mkdir()
    raw = {"repositories": [{"url": str(tmp_path)}, {"url": str(tmp_path / "none")}]}
    results = run(server.Repositories(), raw, server_file=tmp_path / "server.yaml")
    assert [each.text for each in results] == [
        f"{tmp_path}: 1 models",
        f"{tmp_path / 'none'}: No such file or directory",
    ]
    remote = {"repositories": [{"url": "s3://key:secret@host/bucket"}]}
    [result] = run(server.Repositories(), remote)
    assert "not checked" in result.text
    assert "secret" not in result.text


def certificate(folder: Path, ends: dt.datetime) -> dict[str, object]:
    """Write a certificate with its key and return the options of the HTTP frontend."""
    issued = trustme.CA().issue_cert("localhost", not_after=ends)
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    files = {"certificate_file": str(folder / "cert.pem"), "key_file": str(folder / "key.pem")}
    return {"frontends": {"http": {"tls": files}, "grpc": False, "metrics": False}}


@pytest.mark.parametrize(
    ("days", "status"), [(300, CheckStatus.OK), (5, CheckStatus.WARN), (-1, CheckStatus.FAIL)]
)
def test_certificates_expire(tmp_path: Path, days: int, status: CheckStatus) -> None:
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    [result] = run(server.Certificates(), certificate(tmp_path, ends))
    assert result.status is status
    assert f"{ends:%Y-%m-%d}" in result.text


def test_a_key_of_another_certificate_is_a_failure(tmp_path: Path) -> None:
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=90)
    raw = certificate(tmp_path, ends)
    other = trustme.CA().issue_cert("localhost")
    other.private_key_pem.write_to_path(tmp_path / "key.pem")
    [result] = run(server.Certificates(), raw)
    assert result.status is CheckStatus.FAIL


def test_services_are_called_on_request_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        raw = {"cache": {"redis": {"host": "127.0.0.1", "port": port}}}
        [result] = run(server.Services(), raw)
        assert "not checked" in result.text
        [result] = run(server.Services(), raw, network=True)
        assert result.status is CheckStatus.OK
    [result] = run(server.Services(), raw, network=True)
    assert result.status is CheckStatus.FAIL


def test_a_small_container_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"cpu.max": "50000 100000", "memory.max": "1048576", "memory.current": "1000000"}
    files["pids.max"] = "100"
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert "0.5 cores" in of(run(machine.Processor()), CheckStatus.WARN)[0]
    assert "of 1 MiB" in of(run(machine.MainMemory()), CheckStatus.WARN)[0]
    assert "100 threads" in of(run(machine.ProcessLimits()), CheckStatus.WARN)[0]


def test_settings_of_the_kernel_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sys/net/core").mkdir(parents=True)
    (tmp_path / "sys/net/core/somaxconn").write_text("128\n")
    (tmp_path / "cpuinfo").write_text("flags : sse2\n")
    monkeypatch.setattr(machine, "PROCESSES", tmp_path)
    assert "somaxconn is 128" in of(run(machine.KernelSettings()), CheckStatus.WARN)[0]
    assert any("AVX2" in text for text in of(run(machine.Processor()), CheckStatus.WARN))


def test_shared_memory_matters_for_clients_only(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "SHARED", tmp_path / "none")
    assert of(run(machine.SharedMemoryFolder()), CheckStatus.FAIL) == []
    assert len(of(run(machine.SharedMemoryFolder(), {"allow_client_shm": True}), CheckStatus.FAIL))


def test_a_budget_above_the_memory_is_a_failure() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    raw = {"memory": {"budget": total * 2}}
    assert "memory.budget" in of(run(machine.MainMemory(), raw), CheckStatus.FAIL)[0]


def test_a_driver_without_gpus_is_a_failure(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "version").write_text("NVRM version: 580.1\nGCC\n")
    check = machine.Gpus()
    monkeypatch.setattr(check, "folder", tmp_path)
    monkeypatch.setattr(machine, "DEVICES", tmp_path)
    results = run(check)
    assert results[0].text == "driver: NVRM version: 580.1"
    assert results[1].status is CheckStatus.FAIL


def test_a_broken_plugin_names_the_command_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = make_plugin_manager(discover=False)

    class Broken:
        @staticmethod
        @tritonpy_doctor.hookimpl
        def tritonpy_backends() -> dict[str, str]:
            return {"toy": "no_such_module_here:Toy"}

    manager.register(Broken(), "toy", "toy-dist")
    monkeypatch.setattr(installation, "make_plugin_manager", lambda **_options: manager)
    failed = of(run(installation.PluginImports()), CheckStatus.FAIL)
    assert len(failed) == 1
    assert "toy-dist" in failed[0]
    assert of(run(installation.MissingBackends()), CheckStatus.FAIL) == []


def test_an_unmet_requirement_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = installation.importlib.metadata
    monkeypatch.setattr(
        metadata, "requires", lambda name: ["numpy>=99", "no-such-package", 'old; extra == "x"']
    )
    failed = of(run(installation.PackageVersions()), CheckStatus.FAIL)
    assert any("numpy>=99" in text for text in failed)
    assert any("no-such-package, which is not installed" in text for text in failed)
    assert not any("old" in text.split() for text in failed)
