"""Model repositories and their agents, and loading, reloading and unloading of models.

Plugins import the names below from here. The modules of the package import each other directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.engine import ModelIndex
    from tritonpy.api.load_cancellation import LoadCancellation
    from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
    from tritonpy.api.repository import ModelChanged, ModelListing, Repository, RepositoryContext, named_versions
    from tritonpy.private_folders import make_private_folder
    from tritonpy.redacted_urls import redact_urls

__all__ = [
    "AgentAction",
    "AgentModel",
    "LoadCancellation",
    "ModelChanged",
    "ModelIndex",
    "ModelListing",
    "RepoAgent",
    "Repository",
    "RepositoryContext",
    "make_private_folder",
    "named_versions",
    "redact_urls",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.engine": ("ModelIndex",),
        "tritonpy.api.load_cancellation": ("LoadCancellation",),
        "tritonpy.api.repo_agent": ("AgentAction", "AgentModel", "RepoAgent"),
        "tritonpy.api.repository": (
            "ModelChanged",
            "ModelListing",
            "Repository",
            "RepositoryContext",
            "named_versions",
        ),
        "tritonpy.private_folders": ("make_private_folder",),
        "tritonpy.redacted_urls": ("redact_urls",),
    },
)
