"""The debug session: a server in a thread, with the model in the main thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import RunningServer, StartupError, TritonError, running_server
from tritonpy_backend_python.debug.backend import DebugPlugin, DebugState
from tritonpy_backend_python.debug.main_thread import MainThread
from tritonpy_backend_python.debug.report import Reporter, print_message
from tritonpy_backend_python.debug.target import DebugTarget

# A function that uses the running server until the event is set, and returns the exit status.
UseServer = Callable[[RunningServer, threading.Event], int]


class Session:
    """A debug session, which runs once, in the main thread. `settings` are those of server.yaml."""

    def __init__(
        self,
        target: DebugTarget,
        post_mortem: bool,
        any_interpreter: bool,
        settings: Mapping[str, Any],
    ) -> None:
        main_thread, reporter = MainThread(self._leave), Reporter(post_mortem, self._leave)
        self._state = DebugState(target.name, any_interpreter, main_thread, reporter)
        self._settings = settings
        self._status = 1

    def run(self, use_server: UseServer) -> int:
        """Start the server, call `use_server` and stop the server.

        Return the exit status, 1 if the model did not load.
        """
        thread = threading.Thread(
            target=self._host, args=(use_server,), name="debugged-server", daemon=True
        )
        thread.start()
        self._state.main_thread.serve()
        thread.join()
        return self._status

    def _host(self, use_server: UseServer) -> None:
        try:
            with running_server(self._settings, [DebugPlugin(self._state)]) as server:
                self._status = self._use_server(server, use_server)
        except (StartupError, TritonError) as error:
            print_message(f"error: {error}")
        finally:
            self._state.main_thread.end()

    def _use_server(self, server: RunningServer, use_server: UseServer) -> int:
        state = self._state
        failures = server.server.failures
        for name, error in failures.items():
            # An error of the debugged model may have been reported already, with its traceback.
            if name != state.name or not state.reporter.has_reported:
                print_message(f"error: {error.message.strip()}")
        if failures:
            return 1
        if not state.loaded:
            backend = server.engine.model_config(state.name).backend
            print_message(
                f"error: model '{state.name}' has the backend '{backend}': "
                "only models with a model.py can be debugged"
            )
            return 1
        return use_server(server, state.stop_event)

    def _leave(self) -> None:
        if self._state.stop_event.is_set():  # a second Ctrl-C ends the process
            os._exit(130)
        self._state.stop_event.set()
