"""Which models are lazy, from their configuration and the server's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tritonpy.repository.sources import FoundModel
from tritonpy_config.config_file import CONFIG_FILE
from tritonpy_config.model_json import read_config_json
from tritonpy_config.model_text import read_config_text
from tritonpy_config.parameters import parameter_bool
from tritonpy_config.server.sections import MemorySettings

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

LAZY = "lazy"
PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class LazyChoice:
    """The configuration of a lazy model as in its files. A `pinned` model stays loaded."""

    config: ModelConfig
    pinned: bool


def lazy_choice(
    found: FoundModel,
    override: str | None,
    config_name: str,
    settings: MemorySettings,
    *,
    as_member: bool = False,
) -> LazyChoice | None:
    """Return the choice for a lazy model, or None.

    Only the configuration is fetched. A member that only a lazy ensemble uses (`as_member`) is lazy
    by default. None for a configuration that cannot be read: the load reports the error. Raises
    `InvalidArgument` for parameters that are not booleans.
    """
    name = found.listing.name
    by_default = as_member or _matches(name, settings.lazy)
    content = override.encode() if override is not None else _content(found, config_name)
    if content is None or not (by_default or LAZY.encode() in content):
        return None
    reading = read_config_json(override) if override is not None else read_config_text(content)
    if reading.problems or not _parameter(reading.config, LAZY, default=by_default):
        return None
    pinned = _parameter(reading.config, PINNED, default=_matches(name, settings.pinned))
    return LazyChoice(reading.config, pinned)


def _content(found: FoundModel, config_name: str) -> bytes | None:
    """Return the configuration file, empty if there is none; None if it is unavailable now."""
    names = [f"configs/{config_name}.pbtxt", CONFIG_FILE] if config_name else [CONFIG_FILE]
    for name in names:
        if name in found.listing.files:
            return found.repository.peek(found.listing, name)
    return b""


def _parameter(config: ModelConfig, key: str, *, default: bool) -> bool:
    return (
        parameter_bool(key, config.parameters[key].string_value)
        if key in config.parameters
        else default
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
