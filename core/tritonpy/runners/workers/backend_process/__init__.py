"""Any `Backend` class in a worker process: `SpawnLauncher` is the server's side, `main` the process's.

The process runs the class as the server's own threads would, against the same contexts. What leaves it (answers, calls to other models,
questions, log lines) goes through one socket in the worker protocol, see `tritonpy.ipc`.

Threads: the main one loads, executes and closes the instance, and reads the socket in between; the `deputy` reads it while an execution lasts;
answers of called models are delivered by one, and each question whether the instance is ready is answered by another.

A request is made anew in the process for each execution. It has what its client said and what a scheduler added, its trace as text, and not who the
client is (`principal`, `headers`) or when it came; what a backend notes in it is gone when it hands it back.
"""

from __future__ import annotations

from tritonpy.runners.workers.backend_process.launcher import SpawnLauncher

__all__ = ["SpawnLauncher"]
