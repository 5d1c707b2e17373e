"""Checks of what a server.yaml needs: ports, repositories, certificates and services."""

from __future__ import annotations

import datetime as dt
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from tritonpy.config import InvalidServerConfig, ServerConfig, decode_options
from tritonpy.plugins import PLUGIN_SECTIONS, check_plugin_options, make_plugin_manager
from tritonpy.repository import RepositoryContext, redact_urls
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_types.errors import PluginError, TritonError

_SOON = dt.timedelta(days=30)
_CONNECT_S = 2.0


class Configuration(DoctorCheck):
    """The options of server.yaml, those of plugins included."""

    title = "Configuration"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield a failure per problem."""
        manager = make_plugin_manager(disable=context.config.plugins.disable)
        try:
            check_plugin_options(context.config, manager)
        except InvalidServerConfig as error:
            for problem in error.problems:
                yield CheckResult(
                    CheckStatus.FAIL, str(problem), "Correct it: tritonpy explain lists the keys."
                )
        else:
            yield CheckResult(CheckStatus.OK, "all options are valid")


def frontend_options(config: ServerConfig) -> Iterator[tuple[str, Any]]:
    """Yield name and decoded options of each frontend that would start."""
    manager = make_plugin_manager(disable=config.plugins.disable)
    table = manager.table("tritonpy_frontends")
    for name, raw in config.enabled_frontends(table).items():
        if name in table:
            try:
                options = table[name].load().Options
                yield name, decode_options(options, raw, f"frontends.{name}")
            except (InvalidServerConfig, PluginError):  # another check reports it
                continue


class Ports(DoctorCheck):
    """The addresses that the server would bind."""

    title = "Ports"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield whether each address is free."""
        config = context.config
        if config.single_port is not None:
            yield _port("HTTP and gRPC", config.host, config.single_port)
        for name, options in frontend_options(config):
            host = getattr(options, "host", "") or config.host
            port = getattr(options, "port", None)
            shared = config.single_port is not None and name in {"http", "grpc"}
            if port is not None and not shared and not host.startswith("unix:"):
                yield _port(name, host, port)


def _port(name: str, host: str, port: int) -> CheckResult:
    if port == 0:
        return CheckResult(CheckStatus.OK, f"{name}: any free port of {host}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        fix = f"Stop the other program (ss -ltnp 'sport = :{port}'), or choose another port."
        if isinstance(error, PermissionError):
            fix = "Choose a port from 1024 on."
        elif isinstance(error, socket.gaierror):
            fix = "Correct 'host' in server.yaml."
        return CheckResult(CheckStatus.FAIL, f"{name}: {host}:{port}: {reason}", fix)
    return CheckResult(CheckStatus.OK, f"{name}: {host}:{port} is free")


class Repositories(DoctorCheck):
    """The model repositories."""

    title = "Repositories"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the number of models of local repositories, and of others with --network."""
        manager = make_plugin_manager(disable=context.config.plugins.disable)
        for each in context.config.repositories:
            address = redact_urls(each.url)
            scheme = each.url.partition("://")[0] if "://" in each.url else ""
            if scheme and scheme != "file":
                if not context.network:
                    yield CheckResult(
                        CheckStatus.OK, f"{address}: not checked", "add --network to check it"
                    )
                    continue
                yield self._remote(context, manager, each, address, scheme)
                continue
            folder = Path(each.url.removeprefix("file://"))
            if context.server_file is None and not folder.exists():
                yield CheckResult(
                    CheckStatus.OK,
                    f"no folder '{folder}' here",
                    "--server FILE checks the repositories of a server.yaml",
                )
                continue
            yield self._local(folder)

    def _local(self, folder: Path) -> CheckResult:
        try:
            names = [
                each.name
                for each in folder.iterdir()
                if each.is_dir() and not each.name.startswith(".")
            ]
        except OSError as error:
            return CheckResult(
                CheckStatus.FAIL,
                f"{folder}: {error.strerror}",
                "Create the folder, or correct 'repositories' in server.yaml.",
            )
        return CheckResult(
            CheckStatus.OK, f"{folder}: {len(names)} models", "tritonpy lint checks them"
        )

    def _remote(
        self, context: DoctorContext, manager: Any, settings: Any, address: str, scheme: str
    ) -> CheckResult:
        try:
            kind = manager.get("tritonpy_repositories", scheme, "repository scheme").load()
            given = {**context.config.repository_options.get(scheme, {}), **settings.options}
            options = decode_options(kind.Options, given, f"repository_options.{scheme}")
            cache = Path.home() / ".cache" / "tritonpy" / "doctor"
            repository = kind(options, RepositoryContext(settings.url, cache))
            try:
                count = len(repository.names())
            finally:
                repository.close()
        except (InvalidServerConfig, PluginError, TritonError) as error:
            return CheckResult(
                CheckStatus.FAIL,
                f"{address}: {redact_urls(str(error))}",
                "Check address, credentials and network.",
            )
        return CheckResult(CheckStatus.OK, f"{address}: {count} models")


class Certificates(DoctorCheck):
    """TLS files of the frontends."""

    title = "TLS"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield expiry of each certificate, and whether its key fits."""
        count = 0
        for name, options in frontend_options(context.config):
            tls = getattr(options, "tls", None)
            if tls is not None and tls.on:
                count += 1
                yield self._pair(name, Path(tls.certificate_file), Path(tls.key_file))
        if not count:
            yield CheckResult(CheckStatus.OK, "no frontend uses TLS")

    def _pair(self, name: str, certificate: Path, key: Path) -> CheckResult:
        try:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate, key, password=lambda: b"")
            parsed = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
        except (OSError, ValueError) as error:
            return CheckResult(
                CheckStatus.FAIL,
                f"{name}: {certificate} and {key} cannot be used: {error}",
                "Give a PEM certificate and its private key without a password.",
            )
        ends = parsed.not_valid_after_utc
        left = ends - dt.datetime.now(dt.UTC)
        text = f"{name}: {certificate} is valid until {ends:%Y-%m-%d}"
        if left <= dt.timedelta(0):
            text = f"{name}: {certificate} expired on {ends:%Y-%m-%d}"
            return CheckResult(CheckStatus.FAIL, text, "Renew the certificate.")
        if left < _SOON:
            return CheckResult(CheckStatus.WARN, text, "Renew the certificate soon.")
        return CheckResult(CheckStatus.OK, text)


class Services(DoctorCheck):
    """Addresses of other services that options name, such as Redis or a key set."""

    title = "Services"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield whether each address accepts connections; only with --network."""
        found = list(_addresses(context.config))
        if not found:
            yield CheckResult(CheckStatus.OK, "no other service is configured")
        for key, host, port in found:
            if not context.network:
                yield CheckResult(
                    CheckStatus.OK,
                    f"{key}: {host}:{port}: not checked",
                    "add --network to check it",
                )
                continue
            try:
                socket.create_connection((host, port), _CONNECT_S).close()
            except OSError as error:
                yield CheckResult(
                    CheckStatus.FAIL,
                    f"{key}: {host}:{port}: {error.strerror or error}",
                    "Start the service, or correct its address in server.yaml.",
                )
            else:
                yield CheckResult(CheckStatus.OK, f"{key}: {host}:{port} accepts connections")


_DEFAULT_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379}


def _addresses(config: ServerConfig) -> Iterator[tuple[str, str, int]]:
    for section in PLUGIN_SECTIONS:
        if section in {"frontends", "repository_options", "trace.modes"}:
            continue
        named: Mapping[str, Any] = getattr(config, section, {})
        for name, options in named.items():
            for key, value in (options if isinstance(options, Mapping) else {}).items():
                yield from _address(f"{section}.{name}.{key}", key, value, options)


def _address(
    path: str, key: str, value: object, options: Mapping[str, Any]
) -> Iterator[tuple[str, str, int]]:
    if key == "host" and isinstance(value, str) and str(options.get("port", "")).isdigit():
        yield path, value, int(options["port"])
    elif key.endswith("url") and isinstance(value, str):
        parts = urlsplit(value)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        if parts.hostname and port:
            yield path, parts.hostname, port


class ServerUser(DoctorCheck):
    """The user that runs the server."""

    title = "User"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield a warning for root, since models run code."""
        if os.geteuid() == 0 and not _in_container():
            yield CheckResult(
                CheckStatus.WARN,
                "you are root: a model's code could change the whole machine",
                "Run the server as a user of its own.",
            )
        else:
            yield CheckResult(CheckStatus.OK, f"user {os.geteuid()}")


def _in_container() -> bool:
    return Path("/.dockerenv").exists() or "KUBERNETES_SERVICE_HOST" in os.environ
