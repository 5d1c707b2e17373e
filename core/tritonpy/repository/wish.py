"""An ensemble as its files or a load request want it, which may have to wait for the models that it stands on."""

from __future__ import annotations

from dataclasses import dataclass

from tritonpy.api.repo_agent import AgentAction
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.prepared import Prepared

Standing = tuple[tuple[LoadedModel, ...], ...]
"""The serving versions of each step's model."""


@dataclass(slots=True, eq=False)
class Wish:
    """`prepared` as it was asked for, and what became of it.

    The texts are for clients, and empty where there is nothing to say: `against` is what stands against building it, now; it was last built on
    `built_on`, where `unfit` is in what it did not fit its members, and `failure` what went wrong then.
    """

    prepared: Prepared
    fingerprint: str
    overridden: bool
    built_on: Standing | None = None
    against: str = ""
    unfit: str = ""
    failure: str = ""
    has_served: bool = False

    @property
    def invalid(self) -> str:
        """What is wrong between it and its members."""
        return self.against or self.unfit

    @property
    def refusal(self) -> str:
        """Why it does not serve; empty where it could."""
        return self.invalid or self.failure

    def began(self) -> None:
        """Tell the agents that it serves, once."""
        if not self.has_served:
            self.has_served = True
            self.prepared.agents.tell(AgentAction.LOAD_COMPLETE)

    def give_up(self) -> None:
        """Free what was prepared, though it never served."""
        self.prepared.agents.tell(AgentAction.LOAD_FAIL)
        self.prepared.release()


@dataclass(slots=True, eq=False)
class Wanted:
    """One ensemble: the newest wish, and behind it the one that served before; `serving` is one of them, or None."""

    wishes: list[Wish]
    serving: Wish | None = None

    @property
    def effective(self) -> Wish:
        """The wish that serves, otherwise the newest."""
        return self.serving or self.wishes[0]
