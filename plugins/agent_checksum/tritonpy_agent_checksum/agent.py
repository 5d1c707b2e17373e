"""The repository agent `checksum`: compares model files with checksums in the configuration."""

from __future__ import annotations

from pathlib import Path

from tritonpy import InvalidArgument
from tritonpy.config import resolve_model_file
from tritonpy.repository import AgentAction, AgentModel, RepoAgent
from tritonpy_agent_checksum.checksum import digest_of, parse_key


class ChecksumAgent(RepoAgent):
    """Each parameter is one file: key `ALGORITHM:path`, value the checksum in hexadecimal digits.

    The path is relative to the model's folder. Algorithms are MD5, as in Triton's agent of this
    name, and SHA-256.
    """

    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        """Compare every file on LOAD.

        Raises `InvalidArgument` for a file that differs or cannot be read, `Unsupported` for an
        unknown algorithm.
        """
        if action is AgentAction.LOAD:
            for key, expected in model.parameters.items():
                _check(model.path, key, expected)
        return None


def _check(folder: Path, key: str, expected: str) -> None:
    algorithm, name = parse_key(key)
    path = resolve_model_file(name, folder, folder)
    try:
        found = digest_of(path, algorithm)
    except OSError as error:
        raise InvalidArgument(
            f"failed to open text file for read {name}: {error.strerror}"
        ) from error
    if found != expected.strip().lower():
        raise InvalidArgument(
            f"Mismatched {algorithm} hash for file {name}, expect: {expected}, got: {found}"
        )
