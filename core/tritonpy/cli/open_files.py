"""The limit of open files."""

from __future__ import annotations

from contextlib import suppress


def allow_many_open_files() -> None:
    """Raise the soft limit of open files to the hard limit.

    Connections, models and workers each use several files, and 1,024 are too few.
    """
    try:
        import resource
    except ImportError:  # no such limit on this platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS may report no hard limit although the kernel has one
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
