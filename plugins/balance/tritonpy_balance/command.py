"""The command `tritonpy balance`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy import Command

USAGE = 2
COMMON_OPTIONS = {
    "--backends": "servers: HOST:PORT or HOST:HTTP_PORT:GRPC_PORT, joined by commas",
    "--backends-file": "file with a server per line, read again when it changes",
    "--dns": "name with an address per server, and its ports",
    "--port": "port for HTTP/1.1, HTTP/2, HTTP/3 and gRPC (default: 8080)",
    "--host": "address to listen on (default: 127.0.0.1)",
    "--policy": "least-request, round-robin, load",
    "--metrics-port": "port for GET /metrics",
    "--tls-cert": "certificate of the port",
    "--tls-key": "its private key",
    "--access-log": "file for a JSON line per call, - for standard output",
}


class BalanceCommand(Command):
    """Balance the load of several servers with Envoy.

    tritonpy balance --backends gpu1:8000:8001,gpu2:8000:8001 --port 8080

    accepts HTTP and gRPC on one port. Servers that fail are left out, and inference is repeated on
    another server. Calls go to servers that have the model ready. Sequences stay on their server.

    Works in front of tritonpy, Triton, and other servers of the v2 protocol.
    """

    usage_status: ClassVar[int] = USAGE
    common_options: ClassVar[Mapping[str, str]] = COMMON_OPTIONS

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.usage = "tritonpy balance --backends A,B [options]"
        add = parser.add_argument
        add("--backends", action="append", default=[], metavar="A,B", help="repeatable")
        add("--backends-file", default="", metavar="FILE", help="a server per line")
        add("--dns", default="", metavar="HOST:PORTS", help="a name with an address per server")
        add("--host", default="127.0.0.1", help="address to listen on")
        add("--port", type=int, default=8080, help="default: 8080")
        add("--metrics-port", type=int, default=0, help="default: none")
        add(
            "--policy",
            choices=["least-request", "round-robin", "load"],
            default="least-request",
            help="load: weights from the load reports of the servers",
        )
        add("--tls-cert", default="", metavar="FILE", help="certificate of the port")
        add("--tls-key", default="", metavar="FILE", help="its private key")
        add("--tls-client-ca", default="", metavar="FILE", help="demand certificates of clients")
        add("--no-http3", action="store_true", help="no HTTP/3, which TLS otherwise brings")
        add("--server-tls", action="store_true", help="encrypt connections to the servers")
        add("--server-ca", default="", metavar="FILE", help="certificates to verify servers with")
        add("--server-name", default="", metavar="NAME", help="what their certificates must name")
        add("--access-log", default="", metavar="FILE", help="a JSON line per call")
        add("--retries", type=int, default=3, metavar="N", help="of a call (default: 3)")
        add(
            "--retry-buffer",
            type=int,
            default=16,
            metavar="MIB",
            help="largest request that can be repeated (default: 16)",
        )
        add("--slow-start", type=float, default=10.0, metavar="S", help="default: 10, 0: off")
        add("--health-interval", type=float, default=0.5, metavar="S", help="default: 0.5")
        add("--poll", type=float, default=1.0, metavar="S", help="of models (default: 1)")
        add("--drain", type=float, default=30.0, metavar="S", help="at the end (default: 30)")
        add(
            "--no-grpc-model-routes",
            action="store_true",
            help="do not read model names from gRPC messages; use the header x-model",
        )
        add("--management", action="store_true", help="pass on calls that change a server")
        add("--folder", default="", metavar="FOLDER", help="keep Envoy's files here")

    def run(self, arguments: argparse.Namespace) -> int:
        """Run until a signal and return the exit status. Raises StartupError."""
        from tritonpy_balance.balancer import Balancer
        from tritonpy_balance.options import InvalidBackend

        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
        try:
            options = make_options(arguments)
        except InvalidBackend as error:
            sys.stderr.write(f"error: {error}\n")
            return USAGE
        balancer = Balancer(options)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: balancer.stop())
        with balancer:
            logging.getLogger("tritonpy.balance").info(
                "balancing on %s:%d", options.host, options.port
            )
            return balancer.run()


def make_options(arguments: argparse.Namespace) -> Any:
    """Return the options of the command line. Raises InvalidBackend."""
    from tritonpy_balance.options import BalanceOptions, InvalidBackend, parse_backend

    backends = tuple(
        part.strip() for text in arguments.backends for part in text.split(",") if part.strip()
    )
    if [bool(backends), bool(arguments.backends_file), bool(arguments.dns)].count(True) != 1:
        raise InvalidBackend("give one of --backends, --backends-file and --dns")
    for text in (*backends, *([arguments.dns] if arguments.dns else [])):
        parse_backend(text)
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        raise InvalidBackend("--tls-cert and --tls-key belong together")
    return BalanceOptions(
        backends=backends,
        file=arguments.backends_file,
        dns=arguments.dns,
        host=arguments.host,
        port=arguments.port,
        metrics_port=arguments.metrics_port,
        policy=arguments.policy,
        certificate=arguments.tls_cert,
        key=arguments.tls_key,
        client_ca=arguments.tls_client_ca,
        http3=not arguments.no_http3,
        server_tls=arguments.server_tls,
        server_ca=arguments.server_ca,
        server_name=arguments.server_name,
        access_log=arguments.access_log,
        retries=arguments.retries,
        retry_buffer=arguments.retry_buffer << 20,
        slow_start_s=arguments.slow_start,
        health_interval_s=arguments.health_interval,
        poll_s=arguments.poll,
        drain_s=arguments.drain,
        grpc_model_routes=not arguments.no_grpc_model_routes,
        management=arguments.management,
        folder=arguments.folder,
    )
