"""What the agent is configured with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tritonpy import Options
from tritonpy_agent_sealed.keys import in_environment


class SealedOptions(Options, frozen=True):
    """The keys of `repo_agents: {sealed: {…}}`.

    Whom to trust is said here and never by a model: who can change a model can change its configuration.
    """

    verify_key_files: Annotated[
        tuple[str, ...], Meta(description="PEM files of public keys: who may sign models.")
    ] = ()
    verify_key_variables: Annotated[tuple[str, ...], Meta(description="Environment variables with such keys.")] = ()
    decryption_key_files: Annotated[
        tuple[str, ...], Meta(description="Files of keys that models are encrypted with.")
    ] = ()
    decryption_key_variables: Annotated[tuple[str, ...], Meta(description="Environment variables with such keys.")] = ()
    directory: Annotated[
        Path | None,
        Meta(description="Where opened models lie while they are loaded, better in memory; default: TMPDIR."),
    ] = None

    def __post_init__(self) -> None:
        if not self.verify_keys:
            raise ValueError(
                "'verify_key_files' or 'verify_key_variables' must name a key: without one nobody's models are trusted"
            )

    @property
    def verify_keys(self) -> tuple[str, ...]:
        """Where the public keys are, as `keys` reads them."""
        return *self.verify_key_files, *map(in_environment, self.verify_key_variables)

    @property
    def decryption_keys(self) -> tuple[str, ...]:
        """Where the keys of encrypted models are."""
        return *self.decryption_key_files, *map(in_environment, self.decryption_key_variables)
