"""The worker's process: its socket, streams and signals."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from . import signals
from .ipc.channel import Channel
from .ipc.parent_watch import ParentWatcher, exit_process
from .output import Output
from .template import Template
from .worker import ModelWorker


def main(descriptor: int, template: bool) -> NoReturn:
    """Serve the socket as a worker or as a template of workers.

    Exit when the server requests it.
    """
    signals.ignore()
    sys.argv = [""]
    output = Output()
    output.install()
    if template:
        connection_descriptor = Template(*_connect(descriptor, output), output).run()
        if connection_descriptor is None:
            sys.exit(0)
        descriptor = connection_descriptor
        signals.install_handlers()
    channel, parent_watcher = _connect(descriptor, output)
    parent_watcher.watch()
    status = ModelWorker(channel, output, parent_watcher).run()
    output.uninstall()
    sys.exit(status)


def _connect(descriptor: int, output: Output) -> tuple[Channel, ParentWatcher]:
    """Return the channel of the socket, which also carries the output, and the lifeline."""
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    channel = Channel(connection, exit_process)
    output.send_to(channel)
    parent_watcher = ParentWatcher(descriptor)

    def detach() -> None:
        channel.close()
        parent_watcher.close_pipe()

    os.register_at_fork(after_in_child=detach)
    return channel, parent_watcher
