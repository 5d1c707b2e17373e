"""Model repositories in clouds and in any other store that fsspec can read.

Plugin discovery imports only this module; fsspec is imported with the first such repository.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl

_CLASS = "tritonpy_repo_cloud.repository:CloudRepository"


@hookimpl
def tritonpy_repositories() -> Mapping[str, str]:
    """Register Triton's schemes of three clouds, and `*` for all other schemes of fsspec."""
    return dict.fromkeys(("s3", "gs", "as", "*"), _CLASS)
