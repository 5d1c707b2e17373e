"""Model repositories in clouds, and wherever else fsspec can read. Discovery imports this module only; fsspec comes with the first such repository."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl

_CLASS = "tritonpy_repo_cloud.repository:CloudRepository"


@hookimpl
def tritonpy_repositories() -> Mapping[str, str]:
    """Register the three clouds by Triton's names for them, and `*`: every other scheme that fsspec knows."""
    return dict.fromkeys(("s3", "gs", "as", "*"), _CLASS)
