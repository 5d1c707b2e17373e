"""A model between reading its files and starting its instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.repository import ModelListing
from tritonpy.repository.agents import AgentChain
from tritonpy.repository.load_attempts import LoadAttempt
from tritonpy.repository.shared_objects import SharedObjects
from tritonpy_config.model_fit import qualified_name
from tritonpy_config.problem import Positions
from tritonpy_config.versions import version_folders, versions_to_load
from tritonpy_protos.model_config_pb2 import ModelConfig

if TYPE_CHECKING:
    from tritonpy.repository.memory_reservation import MemoryReservation


@dataclass(slots=True)
class PreparedModel:
    """A model being loaded: its configuration, its files, and what to free when it is unloaded.

    `ModelLoader.complete` makes `config` final; `source` and `positions` say where its text is.
    """

    listing: ModelListing
    directory: Path
    config: ModelConfig
    source: str
    positions: Positions
    agents: AgentChain
    release: Callable[[], None]
    shared_objects: SharedObjects
    namespace: str = ""
    requested_versions: Sequence[int] = ()
    """The versions that the load request names, regardless of the version policy."""
    versions: Sequence[int] = ()
    """The versions loaded from it, once they are decided."""
    finished: bool = False
    """Nothing more is loaded from it; its versions are being unloaded."""
    reservation: MemoryReservation | None = None
    """The memory reserved for it, if memory is limited."""
    original_config: ModelConfig = field(default_factory=ModelConfig)
    """The configuration before completion and normalization."""
    file_config: ModelConfig | None = None
    """The configuration in the model's own file if a load request overrides it, else None."""
    attempt: LoadAttempt | None = None
    """The load that it was prepared for."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Labels that the outputs of an ensemble inherit from its members."""

    def selected_versions(self) -> tuple[list[int], list[int]]:
        """Return the versions to serve, ascending, and the requested ones that are missing."""
        available = version_folders(self.listing.files)[0]
        if not self.requested_versions:
            return versions_to_load(self.config, available)
        return sorted({*available} & {*self.requested_versions}), sorted(
            {*self.requested_versions} - {*available}
        )

    def begin_unload(self) -> None:
        """Record that the versions loaded from it are being unloaded."""
        if self.reservation is not None:
            self.reservation.begin_unload()

    @property
    def name(self) -> str:
        """The model's name, which is the name of its folder."""
        return self.listing.name

    @property
    def key(self) -> str:
        """The model's qualified name."""
        return qualified_name(self.namespace, self.name)
