"""Options of the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tritonpy import Options
from tritonpy_agent_sealed.keys import environment_location


class SealedOptions(Options, frozen=True):
    """The keys of `repo_agents: {sealed: {…}}`.

    Trusted keys come from server.yaml and never from a model, because an attacker who changes a
    model can change its configuration.
    """

    verify_key_files: Annotated[
        tuple[str, ...],
        Meta(description="PEM files of the public keys that models may be signed with."),
    ] = ()
    verify_key_variables: Annotated[
        tuple[str, ...], Meta(description="Environment variables with such keys.")
    ] = ()
    decryption_key_files: Annotated[
        tuple[str, ...], Meta(description="Files of decryption keys.")
    ] = ()
    decryption_key_variables: Annotated[
        tuple[str, ...], Meta(description="Environment variables with such keys.")
    ] = ()
    directory: Annotated[
        Path | None,
        Meta(
            description=(
                "Folder for decrypted models while they are loaded, preferably in memory; "
                "default: TMPDIR."
            )
        ),
    ] = None

    def __post_init__(self) -> None:
        if not self.verify_keys:
            raise ValueError(
                "'verify_key_files' or 'verify_key_variables' must name a key, "
                "otherwise no model is trusted"
            )

    @property
    def verify_keys(self) -> tuple[str, ...]:
        """Locations of the public keys."""
        return *self.verify_key_files, *map(environment_location, self.verify_key_variables)

    @property
    def decryption_keys(self) -> tuple[str, ...]:
        """Locations of the decryption keys."""
        return *self.decryption_key_files, *map(environment_location, self.decryption_key_variables)
