"""Options of backends, response caches and repository agents in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from tritonpy import Options


class CBackendOptions(Options, frozen=True):
    """The keys below `backends.NAME` in server.yaml, for a backend NAME in C."""

    collects: ClassVar[str] = "settings"

    environment: Annotated[
        Mapping[str, str],
        Meta(
            description="Environment variables of the worker processes, such as LD_LIBRARY_PATH "
            "for the libraries that the backend needs."
        ),
    ] = {}
    settings: Annotated[
        Mapping[str, str],
        Meta(description="All other keys: what the backend reads as its command-line settings."),
    ] = {}


class LibraryCacheOptions(Options, frozen=True):
    """The keys below `cache: {NAME: {…}}`, for a response cache in C."""

    collects: ClassVar[str] = "settings"

    library: Annotated[
        str,
        Meta(description="The libtritoncache_NAME.so; set by the server for cache NAME."),
    ] = ""
    deadline_ms: Annotated[
        float,
        Meta(gt=0, description="Milliseconds after which a lookup counts as a miss."),
    ] = 100.0
    threads: Annotated[
        int, Meta(ge=1, le=256, description="Number of threads that call the cache.")
    ] = 4
    settings: Annotated[
        Mapping[str, str],
        Meta(description="All other keys: what the cache reads as its configuration."),
    ] = {}

    def __post_init__(self) -> None:
        if not self.library:
            raise ValueError("needs 'library', the path of a libtritoncache_NAME.so")


class LibraryAgentOptions(Options, frozen=True):
    """The keys below `repo_agents: {NAME: {…}}`, for a repository agent in C."""

    library: Annotated[
        str,
        Meta(description="The libtritonrepoagent_NAME.so; set by the server for agent NAME."),
    ] = ""

    def __post_init__(self) -> None:
        if not self.library:
            raise ValueError("needs 'library', the path of a libtritonrepoagent_NAME.so")
