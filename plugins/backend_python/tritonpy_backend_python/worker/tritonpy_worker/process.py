"""The process of a worker: what belongs to it as a whole."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from . import signals
from .ipc.channel import Channel
from .ipc.lifeline import Lifeline, end
from .output import Output
from .template import Template
from .worker import Worker


def main(descriptor: int, template: bool) -> NoReturn:
    """Serve the socket of that number, as a worker or as a template of workers; leave when the server says so."""
    signals.ignore()
    sys.argv = [""]
    output = Output()
    output.install()
    if template:
        made = Template(*_tied(descriptor, output), output).run()
        if made is None:
            sys.exit(0)
        descriptor = made
        signals.live_on()
    channel, lifeline = _tied(descriptor, output)
    lifeline.watch()
    status = Worker(channel, output, lifeline).run()
    output.uninstall()
    sys.exit(status)


def _tied(descriptor: int, output: Output) -> tuple[Channel, Lifeline]:
    """Return what ties the process to the server: the socket, which takes what is printed too, and its end."""
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    channel = Channel(connection, end)
    output.speak_on(channel)
    lifeline = Lifeline(descriptor)

    def leave() -> None:
        channel.close()
        lifeline.forget()

    os.register_at_fork(after_in_child=leave)
    return channel, lifeline
