"""The requested state of an ensemble, which may have to wait for its members."""

from __future__ import annotations

from dataclasses import dataclass

from tritonpy.api.repo_agent import AgentAction
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.prepared_model import PreparedModel

MemberVersions = tuple[tuple[LoadedModel, ...], ...]
"""The ready versions of the model of each step."""


@dataclass(slots=True, eq=False)
class EnsembleSpec:
    """An ensemble as its files or a load request define it, and the result of building it.

    `member_error` says why the members do not allow a build now. The last build used the members
    `built_with`. `mismatch` says how the ensemble did not fit them, `load_error` what else failed
    in that build. These texts are for clients, and empty if there is no error.
    """

    prepared: PreparedModel
    fingerprint: str
    overridden: bool
    built_with: MemberVersions | None = None
    member_error: str = ""
    mismatch: str = ""
    load_error: str = ""
    has_served: bool = False

    @property
    def invalid_reason(self) -> str:
        """What is wrong between the ensemble and its members."""
        return self.member_error or self.mismatch

    @property
    def error(self) -> str:
        """Why it does not serve; empty if nothing prevents it."""
        return self.invalid_reason or self.load_error

    def mark_served(self) -> None:
        """Notify the agents that it serves; only the first call has an effect."""
        if not self.has_served:
            self.has_served = True
            self.prepared.agents.notify(AgentAction.LOAD_COMPLETE)

    def discard(self) -> None:
        """Free what was prepared for a spec that never served."""
        self.prepared.agents.notify(AgentAction.LOAD_FAIL)
        self.prepared.release()


@dataclass(slots=True, eq=False)
class EnsembleState:
    """The specs of one ensemble, newest first; `serving` is the one that serves, or None."""

    specs: list[EnsembleSpec]
    serving: EnsembleSpec | None = None

    @property
    def effective_spec(self) -> EnsembleSpec:
        """The spec that serves, otherwise the newest one."""
        return self.serving or self.specs[0]
