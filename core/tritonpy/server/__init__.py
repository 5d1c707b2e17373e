"""A server as a whole: how it is built, started, drained and stopped, and its process.

Start at `server` (`build`); `factories` makes its parts, `embedded` runs one inside a program. The
package may import everything; plugins import the names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.logs import configure_logging, log_uncaught_exceptions
    from tritonpy.server.embedded import RunningServer, running_server
    from tritonpy.server.event_loops import event_loop_factory
    from tritonpy.server.server import Server, build
    from tritonpy.version import is_compiled

__all__ = [
    "RunningServer",
    "Server",
    "build",
    "configure_logging",
    "event_loop_factory",
    "is_compiled",
    "log_uncaught_exceptions",
    "running_server",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.logs": ("configure_logging", "log_uncaught_exceptions"),
        "tritonpy.server.embedded": ("RunningServer", "running_server"),
        "tritonpy.server.event_loops": ("event_loop_factory",),
        "tritonpy.server.server": ("Server", "build"),
        "tritonpy.version": ("is_compiled",),
    },
)
