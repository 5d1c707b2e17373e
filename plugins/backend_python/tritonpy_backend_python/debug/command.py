"""`tritonpy debug`."""

from __future__ import annotations

import argparse
import logging
import threading
from functools import partial
from pathlib import Path
from typing import Any

from tritonpy import Command, RunningServer, StartupError
from tritonpy_backend_python.debug.report import say
from tritonpy_backend_python.debug.target import Target, find_target


class DebugCommand(Command):
    """Run one model.py in the main thread, so that breakpoint() works.

    tritonpy debug models/add --request request.json      one request from a file; its answer is printed
    tritonpy debug models/add --http-port 8000            requests of clients, one at a time

    The model runs in the process of this command, whatever its configuration says of isolation, with one instance. An exception
    prints its traceback; --pdb enters the debugger where it was raised. Ctrl-C ends the command; the debugger's `quit` too.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "model", type=Path, metavar="MODEL", help="the model's folder in its repository, or its model.py"
        )
        source = parser.add_argument_group("where requests come from")
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
            help="length of the JSON text in FILE in bytes, where binary tensors follow",
        )
        source.add_argument(
            "--http-port", type=int, metavar="N", help="serve HTTP clients on this port (0: a free one)"
        )
        source.add_argument(
            "--grpc-port", type=int, metavar="N", help="serve gRPC clients on this port (0: a free one)"
        )
        parser.add_argument("--pdb", action="store_true", help="enter the debugger where an exception was raised")
        parser.add_argument(
            "--with",
            dest="others",
            action="append",
            default=[],
            metavar="NAME",
            help="serve another model of the repository too, one that the model calls; once per model",
        )
        parser.add_argument(
            "--this-interpreter",
            action="store_true",
            help="debug a model that names an environment of its own here nevertheless",
        )
        parser.add_argument("--backend-directory", metavar="DIR", help="folder of Python-based backends")
        parser.add_argument("--verbose", action="store_true", help="show the server's log, verbose lines among it")

    def run(self, arguments: argparse.Namespace) -> int:
        """Debug until the request is answered, or the user leaves. Raises StartupError for arguments that make no sense."""
        target = find_target(arguments.model)
        ports = {"http": arguments.http_port, "grpc": arguments.grpc_port}
        is_live = any(port is not None for port in ports.values())
        if is_live == (arguments.request is not None):
            raise StartupError(
                "give either --request FILE or a port (--http-port N, --grpc-port N): where do requests come from?"
            )
        _log(arguments.verbose, is_live)
        # What follows needs the server and the runtime of models; help and errors come without them.
        from tritonpy_backend_python.debug.asking import ask
        from tritonpy_backend_python.debug.request_file import read_request
        from tritonpy_backend_python.debug.session import Session

        session = Session(target, arguments.pdb, arguments.this_interpreter, _settings(target, ports, arguments))
        if is_live:
            return session.run(partial(_serve, target))
        said = read_request(arguments.request, arguments.header_length)
        return session.run(lambda server, ending: ask(server.engine, target, said, ending))


def _settings(target: Target, ports: dict[str, int | None], arguments: argparse.Namespace) -> dict[str, Any]:
    frontends: dict[str, Any] = {name: False if port is None else {"port": port} for name, port in ports.items()}
    settings: dict[str, Any] = {
        "repositories": [{"url": str(target.repository)}],
        "control": {"mode": "explicit", "load": list(dict.fromkeys([target.name, *arguments.others]))},
        "frontends": {**frontends, "metrics": False},
        "exit_on_error": False,
        "plugins": {"disable": ["backend-python"]},
    }
    if arguments.backend_directory is not None:
        settings["backend_directory"] = arguments.backend_directory
    return settings


def _serve(target: Target, server: RunningServer, ending: threading.Event) -> int:
    addresses = ", ".join(f"{name} on {frontend.address()}" for name, frontend in server.server.frontends.items())
    say(f"debugging '{target.name}': {addresses}; Ctrl-C ends")
    ending.wait()
    return 0


def _log(verbose: bool, is_live: bool) -> None:
    """Show what the model logs, and of the rest what matters."""
    logging.basicConfig(format="%(levelname).1s %(message)s", level=logging.INFO if is_live else logging.WARNING)
    logging.getLogger("tritonpy.model").setLevel(logging.DEBUG if verbose else logging.INFO)
    if verbose:
        logging.getLogger("tritonpy").setLevel(logging.DEBUG)
    else:
        logging.getLogger("tritonpy.repository").setLevel(
            logging.CRITICAL
        )  # why a model does not load is told by the session
