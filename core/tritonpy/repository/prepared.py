"""A model on its way from its files to its instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.repository import ModelListing
from tritonpy.config.positions import Positions
from tritonpy.config.qualified import qualified
from tritonpy.repository.agents import AgentChain
from tritonpy.repository.load_attempts import LoadAttempt
from tritonpy.repository.opened import Opened
from tritonpy.repository.versions import version_folders, versions_to_load
from tritonpy_protos.model_config_pb2 import ModelConfig

if TYPE_CHECKING:
    from tritonpy.repository.budget.ledger import Account


@dataclass(slots=True)
class Prepared:
    """A model on its way: what it says of itself, where its files are, and what must be given back when it is gone.

    `config` is what the files say until `ModelLoader.complete` made it final; `source` and `positions` are where that stands.
    """

    listing: ModelListing
    directory: Path
    config: ModelConfig
    source: str
    positions: Positions
    agents: AgentChain
    release: Callable[[], None]
    opened: Opened
    namespace: str = ""
    named: Sequence[int] = ()
    """The versions that the load request named, whatever the policy says; none where it named none."""
    versions: Sequence[int] = ()
    """Those that are loaded from it, once that is decided."""
    over: bool = False
    """Nothing is to be loaded from it any more: what there is, is being unloaded."""
    account: Account | None = None
    """Of the memory that it holds, where that has a bound."""
    given: ModelConfig = field(default_factory=ModelConfig)
    """The configuration before it was made final."""
    own_config: ModelConfig | None = None
    """What the model's own configuration file says, where a load request brought another configuration; None where it did not."""
    attempt: LoadAttempt | None = None
    """The load that it was prepared for."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Those that the outputs of an ensemble have from its members, where it has none of its own."""

    def chosen(self) -> tuple[list[int], list[int]]:
        """Return the versions that are to serve, ascending, and those that are wanted and not there."""
        available = version_folders(self.listing.files)[0]
        if not self.named:
            return versions_to_load(self.config, available)
        return sorted({*available} & {*self.named}), sorted({*self.named} - {*available})

    def leave(self) -> None:
        """Take note that what it was loaded into is being unloaded."""
        if self.account is not None:
            self.account.leave()

    @property
    def name(self) -> str:
        """The model's name: that of its folder."""
        return self.listing.name

    @property
    def key(self) -> str:
        """The model's qualified name."""
        return qualified(self.namespace, self.name)
