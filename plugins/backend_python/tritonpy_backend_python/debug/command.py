"""The command `tritonpy debug`."""

from __future__ import annotations

import argparse
import logging
import threading
from functools import partial
from pathlib import Path
from typing import Any

from tritonpy import Command, RunningServer, StartupError
from tritonpy_backend_python.debug.report import print_message
from tritonpy_backend_python.debug.target import DebugTarget, find_target


class DebugCommand(Command):
    """Run one model.py in the main thread, so that breakpoint() works.

    tritonpy debug models/add --request request.json

    sends one request from a file and prints its response.

    tritonpy debug models/add --http-port 8000

    serves requests of clients, one at a time.

    The model runs in the process of this command with one instance, whatever isolation its
    configuration has. An exception prints its traceback; --pdb enters the debugger where it was
    raised. Ctrl-C and the debugger's `quit` end the command.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "model",
            type=Path,
            metavar="MODEL",
            help="the model's folder in its repository, or its model.py",
        )
        source = parser.add_argument_group("source of requests")
        source.add_argument(
            "--request",
            type=Path,
            metavar="FILE",
            help="an inference request as JSON, as curl would send it with -d @FILE",
        )
        source.add_argument(
            "--header-length",
            type=int,
            metavar="N",
            help="length of the JSON text in FILE in bytes, if binary tensors follow",
        )
        source.add_argument(
            "--http-port",
            type=int,
            metavar="N",
            help="serve HTTP clients on this port (0: a free one)",
        )
        source.add_argument(
            "--grpc-port",
            type=int,
            metavar="N",
            help="serve gRPC clients on this port (0: a free one)",
        )
        parser.add_argument(
            "--pdb", action="store_true", help="enter the debugger where an exception was raised"
        )
        parser.add_argument(
            "--with",
            dest="others",
            action="append",
            default=[],
            metavar="NAME",
            help=(
                "also serve another model of the repository, such as one that the model calls; "
                "can be repeated"
            ),
        )
        parser.add_argument(
            "--this-interpreter",
            action="store_true",
            help="debug the model in this interpreter even if it names its own environment",
        )
        parser.add_argument(
            "--backend-directory", metavar="DIR", help="folder of Python-based backends"
        )
        parser.add_argument(
            "--verbose", action="store_true", help="show the server's log, including verbose lines"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Debug until the request has its response or the user quits.

        Raises `StartupError` for bad arguments.
        """
        target = find_target(arguments.model)
        ports = {"http": arguments.http_port, "grpc": arguments.grpc_port}
        is_live = any(port is not None for port in ports.values())
        if is_live == (arguments.request is not None):
            raise StartupError(
                "give either --request FILE or a port (--http-port N, --grpc-port N) as the "
                "source of requests"
            )
        _log(arguments.verbose, is_live)
        # Late imports: help and argument errors do not need the server and the runtime of models.
        from tritonpy_backend_python.debug.client import send_request
        from tritonpy_backend_python.debug.request_file import read_request
        from tritonpy_backend_python.debug.session import Session

        session = Session(
            target, arguments.pdb, arguments.this_interpreter, _settings(target, ports, arguments)
        )
        if is_live:
            return session.run(partial(_serve, target))
        file_request = read_request(arguments.request, arguments.header_length)
        return session.run(
            lambda server, stop_event: send_request(server.engine, target, file_request, stop_event)
        )


def _settings(
    target: DebugTarget, ports: dict[str, int | None], arguments: argparse.Namespace
) -> dict[str, Any]:
    frontends: dict[str, Any] = {
        name: False if port is None else {"port": port} for name, port in ports.items()
    }
    settings: dict[str, Any] = {
        "repositories": [{"url": str(target.repository)}],
        "control": {
            "mode": "explicit",
            "load": list(dict.fromkeys([target.name, *arguments.others])),
        },
        "frontends": {**frontends, "metrics": False},
        "exit_on_error": False,
        "plugins": {"disable": ["backend-python"]},
    }
    if arguments.backend_directory is not None:
        settings["backend_directory"] = arguments.backend_directory
    return settings


def _serve(target: DebugTarget, server: RunningServer, stop_event: threading.Event) -> int:
    addresses = ", ".join(
        f"{name} on {frontend.address()}" for name, frontend in server.server.frontends.items()
    )
    print_message(f"debugging '{target.name}': {addresses}; Ctrl-C ends")
    stop_event.wait()
    return 0


def _log(verbose: bool, is_live: bool) -> None:
    """Show the model's log, and warnings of everything else."""
    logging.basicConfig(
        format="%(levelname).1s %(message)s", level=logging.INFO if is_live else logging.WARNING
    )
    logging.getLogger("tritonpy.model").setLevel(logging.DEBUG if verbose else logging.INFO)
    if verbose:
        logging.getLogger("tritonpy").setLevel(logging.DEBUG)
    else:
        # The session reports load errors.
        logging.getLogger("tritonpy.repository").setLevel(logging.CRITICAL)
