"""The server of the debug command: in a thread, with the model in the main thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import RunningServer, StartupError, TritonError, running_server
from tritonpy_backend_python.debug.backend import Debugging, DebugPlugin
from tritonpy_backend_python.debug.report import Reporter, say
from tritonpy_backend_python.debug.stage import Stage
from tritonpy_backend_python.debug.target import Target

# What is done with the server while it runs; returns the exit status.
Work = Callable[[RunningServer, threading.Event], int]


class Session:
    """Runs once, in the main thread. `settings` are those of server.yaml beside what the session decides."""

    def __init__(self, target: Target, post_mortem: bool, any_interpreter: bool, settings: Mapping[str, Any]) -> None:
        stage, reporter = Stage(self._leave), Reporter(post_mortem, self._leave)
        self._debugging = Debugging(target.name, any_interpreter, stage, reporter)
        self._settings = settings
        self._status = 1

    def run(self, work: Work) -> int:
        """Start the server, do `work` and stop the server; return the exit status, 1 where the model did not load."""
        thread = threading.Thread(target=self._host, args=(work,), name="debugged-server", daemon=True)
        thread.start()
        self._debugging.stage.serve()
        thread.join()
        return self._status

    def _host(self, work: Work) -> None:
        try:
            with running_server(self._settings, [DebugPlugin(self._debugging)]) as server:
                self._status = self._worked(server, work)
        except (StartupError, TritonError) as error:
            say(f"error: {error}")
        finally:
            self._debugging.stage.end()

    def _worked(self, server: RunningServer, work: Work) -> int:
        debugging = self._debugging
        failures = server.server.failures
        for name, error in failures.items():
            if name != debugging.name or not debugging.reporter.has_told:  # else it was told with its traceback
                say(f"error: {error.message.strip()}")
        if failures:
            return 1
        if not debugging.loaded:
            backend = server.engine.model_config(debugging.name).backend
            say(
                f"error: model '{debugging.name}' has the backend '{backend}': only models with a model.py can be debugged"
            )
            return 1
        return work(server, debugging.ending)

    def _leave(self) -> None:
        if self._debugging.ending.is_set():  # the second time it is meant
            os._exit(130)
        self._debugging.ending.set()
