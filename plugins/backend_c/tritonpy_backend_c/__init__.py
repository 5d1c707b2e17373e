"""Backends written in C or C++ for Triton, unmodified: the backend `c` of tritonpy.

Start at `backend`; `library` has the functions of the C++ library, `host` the thread that serves
the backends' calls. `strategy`, `cache` and `agent` run the other kinds of libraries. The package
imports public names of `tritonpy` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    return {"c": "tritonpy_backend_c.backend:CBackend"}


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, str]:
    return {"c": "tritonpy_backend_c.strategy:BatchLibraryPolicy"}


@hookimpl
def tritonpy_caches() -> Mapping[str, str]:
    return {"c": "tritonpy_backend_c.cache:LibraryCache"}


@hookimpl
def tritonpy_repo_agents() -> Mapping[str, str]:
    return {"c": "tritonpy_backend_c.agent:LibraryAgent"}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    return {"check-backend": "tritonpy_backend_c.command:CheckBackendCommand"}


def include_directory() -> Path:
    """Return the folder for the compiler's option `-I`: it has `triton/core/tritonbackend.h`."""
    return Path(__file__).parent / "include"
