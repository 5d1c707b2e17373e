"""How many files the server may have open."""

from __future__ import annotations

from contextlib import suppress


def allow_many_open_files() -> None:
    """Raise the soft limit to the hard one: every connection, model and worker takes some, and the usual 1,024 are soon gone."""
    try:
        import resource
    except ImportError:  # no such limit on this platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS: the hard limit may say "no limit" and the kernel another
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
