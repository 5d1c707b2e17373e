"""Which models load at their first request, from what their files and the server's configuration say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tritonpy.config.model_json import read_config_json
from tritonpy.config.model_text import read_config_text
from tritonpy.config.parameters import parameter_bool
from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.repository.reading import CONFIG_FILE
from tritonpy.repository.sources import Found

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

LAZY = "lazy"
PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class LazyChoice:
    """A model that is to be loaded at its first request: its configuration as its files have it; a `pinned` one stays loaded then."""

    config: ModelConfig
    pinned: bool


def lazy_choice(
    found: Found, override: str | None, config_name: str, settings: MemorySettings, *, along: bool = False
) -> LazyChoice | None:
    """Return the choice for a lazy model, None for one that is not. Nothing but its configuration is fetched.

    A model that only a lazy ensemble stands on (`along`) is lazy unless it says otherwise.
    What cannot be read is None too: its load will say what is wrong. Raises InvalidArgument for parameters that say neither yes nor no.
    """
    name = found.listing.name
    by_default = along or _matches(name, settings.lazy)
    content = override.encode() if override is not None else _content(found, config_name)
    if content is None or not (by_default or LAZY.encode() in content):
        return None
    reading = read_config_json(override) if override is not None else read_config_text(content)
    if reading.problems or not _said(reading.config, LAZY, default=by_default):
        return None
    pinned = _said(reading.config, PINNED, default=_matches(name, settings.pinned))
    return LazyChoice(reading.config, pinned)


def _content(found: Found, config_name: str) -> bytes | None:
    """Return the text of the configuration, an empty one where there is no file; None where it cannot be had now."""
    names = [f"configs/{config_name}.pbtxt", CONFIG_FILE] if config_name else [CONFIG_FILE]
    for name in names:
        if name in found.listing.files:
            return found.repository.peek(found.listing, name)
    return b""


def _said(config: ModelConfig, key: str, *, default: bool) -> bool:
    return parameter_bool(key, config.parameters[key].string_value) if key in config.parameters else default


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
