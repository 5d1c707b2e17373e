"""Output of models: complete lines go to the server's log, with the IDs of current requests."""

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

_LONGEST = 1 << 16  # longest part of a line, in bytes, that waits for the line's end


class _Lines(io.BufferedIOBase):
    """Buffers output until its line is complete.

    If the server is unreachable, lines go to the stream's descriptor.
    """

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
            self._log_lines(whole)
        return len(data)

    def end_line(self) -> None:
        """Send an incomplete line."""
        if self._begun:
            self.write(b"\n")

    def reset(self) -> None:
        """Reset the stream in a fork, which may have interrupted another thread's write."""
        self._lock = RLock()
        self._begun = bytearray()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def _log_lines(self, whole: bytes) -> None:
        # Progress bars overwrite a line after a carriage return: only the last state matters.
        lines = [
            line.rstrip("\r").rpartition("\r")[2]
            for line in whole.decode(errors="backslashreplace").split("\n")
        ]
        message = {
            "level": "INFO",
            "message": "\n".join(lines).rstrip("\n"),
            "requests": request_ids(),
        }
        try:
            if self.channel is not None:
                self.channel.send(Kind.NOTIFY, extras={"verb": "log", "arguments": message})
                return
        except ChannelClosed:
            pass
        os.write(self._descriptor, whole)


class Output:
    """Replaces stdout and stderr of the process. Direct writes to descriptors are unchanged."""

    def __init__(self) -> None:
        self._streams = [_Lines(descriptor) for descriptor in (1, 2)]

    def install(self) -> None:
        """Replace `sys.stdout` and `sys.stderr`. Crash reports still go to the real stream."""
        faulthandler.enable(2)  # the descriptor, because the stream may be replaced
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(
                cast("Any", stream), encoding="utf-8", errors="backslashreplace", write_through=True
            )
            for stream in self._streams
        )
        os.register_at_fork(after_in_child=self._reset_streams)

    def send_to(self, channel: Channel) -> None:
        """Send further output through `channel`, also that of existing logging handlers."""
        for stream in self._streams:
            stream.channel = channel

    def uninstall(self) -> None:
        """Send further output to the descriptors."""
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

    def end_lines(self) -> None:
        """Send incomplete lines."""
        for stream in self._streams:
            stream.end_line()

    def _reset_streams(self) -> None:
        for stream in self._streams:
            stream.reset()
