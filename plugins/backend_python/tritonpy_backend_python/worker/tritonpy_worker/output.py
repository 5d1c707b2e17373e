"""What a model prints: whole lines go to the server's log, with the requests that were being executed."""

from __future__ import annotations

import faulthandler
import io
import os
import sys
from threading import RLock
from typing import Any, cast

from .context import request_ids
from .ipc import Kind
from .ipc.channel import Channel, ChannelClosed

_LONGEST = 1 << 16  # bytes of a line that wait for its end


class _Lines(io.BufferedIOBase):
    """Keeps what was written until its line is complete. Where the server cannot be told, it goes to the stream's own descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.channel: Channel | None = None
        self._descriptor = descriptor
        self._lock = RLock()  # a destructor may print in the middle of a print
        self._begun = bytearray()

    def write(self, data: Any) -> int:
        with self._lock:
            self._begun += data
            end = len(self._begun) if len(self._begun) > _LONGEST else self._begun.rfind(b"\n") + 1
            whole = bytes(self._begun[:end])
            del self._begun[:end]
        if whole:
            self._say(whole)
        return len(data)

    def end_line(self) -> None:
        """Let go of a line that has no end."""
        if self._begun:
            self.write(b"\n")

    def renew(self) -> None:
        """Make it usable in a process that was forked while another thread was writing."""
        self._lock = RLock()
        self._begun = bytearray()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def _say(self, whole: bytes) -> None:
        # A carriage return writes a line anew, as progress bars do: what counts is its last state.
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in whole.decode(errors="backslashreplace").split("\n")]
        said = {"level": "INFO", "message": "\n".join(lines).rstrip("\n"), "requests": request_ids()}
        try:
            if self.channel is not None:
                self.channel.send(Kind.TELL, extras={"verb": "log", "arguments": said})
                return
        except ChannelClosed:
            pass
        os.write(self._descriptor, whole)


class Output:
    """Stands in for the process's two streams; what is written to the descriptors themselves is not touched."""

    def __init__(self) -> None:
        self._streams = [_Lines(descriptor) for descriptor in (1, 2)]

    def install(self) -> None:
        """Replace `sys.stdout` and `sys.stderr`; a crash is still described on the real one."""
        faulthandler.enable(2)  # the descriptor: the stream may be replaced
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(cast("Any", stream), encoding="utf-8", errors="backslashreplace", write_through=True)
            for stream in self._streams
        )
        os.register_at_fork(after_in_child=self._renew)

    def speak_on(self, channel: Channel) -> None:
        """Send what is printed from now on through `channel`, also by handlers of logging that took the streams earlier."""
        for stream in self._streams:
            stream.channel = channel

    def uninstall(self) -> None:
        """Let what is printed from now on go to the descriptors."""
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

    def end_lines(self) -> None:
        """Send what has no line end yet."""
        for stream in self._streams:
            stream.end_line()

    def _renew(self) -> None:
        for stream in self._streams:
            stream.renew()
