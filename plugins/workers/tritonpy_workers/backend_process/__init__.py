"""Worker processes for `Backend` classes.

`SpawnLauncher` is the server's side, `main` that of the process. The process runs the class with
the same contexts as threads of the server do. Responses, calls to other models, queries and log
lines are sent over one socket in the worker protocol (see `tritonpy_ipc`).

The main thread loads, executes and closes the instance, and reads the socket in between. The
`BackgroundReader` reads it during an execution. One thread delivers the responses of called models.
Each query of the server runs on its own thread.

A request object is created in the process for each execution. It has the client's data, the
scheduler's data and the trace as text. It lacks the identity of the client (`principal`, `headers`)
and its arrival time. Attributes that a backend sets on it are lost when it is rescheduled.
"""

from __future__ import annotations

from tritonpy_workers.backend_process.launcher import SpawnLauncher

__all__ = ["SpawnLauncher"]
