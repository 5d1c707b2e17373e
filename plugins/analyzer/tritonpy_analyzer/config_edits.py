"""Writes the recommended settings into config.pbtxt; comments, order and layout stay."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from tritonpy import StartupError
from tritonpy_analyzer.space import BATCH, BATCHING, CORE, DELAY, INSTANCES
from tritonpy_analyzer.study import Study
from tritonpy_checks import Edit
from tritonpy_checks.edits import apply_edits, insert_field, remove_field, replace_value
from tritonpy_config.config_file import CONFIG_FILE
from tritonpy_config.model_text import read_config_text
from tritonpy_config.problem import ParsedConfig, entry
from tritonpy_config.tuning import DEFAULT_SETTING, Setting

_PREFERRED = "dynamic_batching.preferred_batch_size"


def write_settings(study: Study, repository: Path, output: Path | None, out: TextIO) -> None:
    """Show the changes of the recommended configuration as a diff, then write them.

    With `output`, the changed files are written to that folder instead. Nothing is written unless
    the study shows that the configuration is better. Raises StartupError.
    """
    best = study.recommended
    if best is None:
        out.write("nothing to write: no better configuration was found\n")
        return
    settings: dict[str, dict[str, Setting]] = {}
    for model, name, value in best.settings:
        settings.setdefault(model, {})[name] = value
    for model, changes in best.changes.items():
        path = repository / model / CONFIG_FILE
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            changed = edit_config(text, settings[model], changes)
            target = path if output is None else output / model / CONFIG_FILE
            out.writelines(
                difflib.unified_diff(
                    text.splitlines(keepends=True),
                    changed.splitlines(keepends=True),
                    str(path),
                    str(target),
                )
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(changed.encode())  # keeps the line endings
        except (OSError, UnicodeDecodeError) as error:
            raise StartupError(f"{path} cannot be changed: {error}") from error


def edit_config(text: str, settings: Mapping[str, Setting], changes: Mapping[str, Setting]) -> str:
    """Return the text of a configuration with other settings.

    `settings` are all settings of the candidate, `changes` those that differ. Raises StartupError
    if the text is not a valid configuration.
    """
    parsed = read_config_text(text.encode())
    if parsed.problems:
        raise StartupError(f"the configuration cannot be read: {parsed.problems[0].text}")
    edits: list[Edit] = []
    added: list[str] = []
    for change in _edits(text, parsed, settings, changes):
        if isinstance(change, str):
            added.append(change)
        else:
            edits.append(change)
    changed = apply_edits(text, edits)
    if added and changed and not changed.endswith("\n"):
        changed += "\n"
    return changed + "".join(f"{line}\n" for line in added)


def _edits(
    text: str,
    parsed: ParsedConfig,
    settings: Mapping[str, Setting],
    changes: Mapping[str, Setting],
) -> Iterator[Edit | str]:
    """Yield edits of the text, and fields to add at its end."""
    at, file = parsed.positions, Path(CONFIG_FILE)
    if BATCH in changes:
        batch = str(changes[BATCH])
        known = BATCH in at
        yield replace_value(file, text, at[BATCH], batch) if known else f"{BATCH}: {batch}"
    if INSTANCES in changes:
        count = f"count: {changes[INSTANCES]}"
        if "instance_group[0].count" in at:
            place = at["instance_group[0].count"]
            yield replace_value(file, text, place, str(changes[INSTANCES]))
        elif "instance_group[0]" in at:
            yield insert_field(file, text, at["instance_group[0]"], count)
        else:
            yield f"instance_group [{{ {count} }}]"
    if BATCHING in changes or DELAY in changes or BATCH in changes:
        yield from _batching_edits(text, parsed, settings)
    for name, value in changes.items():
        if name not in CORE:
            yield from _parameter_edits(text, parsed, name, value)


def _batching_edits(
    text: str, parsed: ParsedConfig, settings: Mapping[str, Setting]
) -> Iterator[Edit | str]:
    at, file = parsed.positions, Path(CONFIG_FILE)
    if BATCHING not in settings:
        return
    known = "dynamic_batching" in at
    if not settings[BATCHING]:
        if known:
            yield remove_field(file, text, at["dynamic_batching"])
        return
    delay = int(settings.get(DELAY, 0))
    field = f"max_queue_delay_microseconds: {delay}"
    present = parsed.config.dynamic_batching
    if not known:
        yield f"dynamic_batching {{ {field} }}" if delay else "dynamic_batching { }"
    elif f"dynamic_batching.{DELAY}" in at:
        if present.max_queue_delay_microseconds != delay:
            yield replace_value(file, text, at[f"dynamic_batching.{DELAY}"], str(delay))
    elif delay:
        yield insert_field(file, text, at["dynamic_batching"], field)
    batch = int(settings.get(BATCH, parsed.config.max_batch_size))
    if any(size > batch for size in present.preferred_batch_size) and _PREFERRED in at:
        kept = [size for size in present.preferred_batch_size if size <= batch]
        listed = f"[ {', '.join(map(str, kept))} ]"
        place = at[_PREFERRED]
        yield replace_value(file, text, place, listed) if kept else remove_field(file, text, place)


def _parameter_edits(
    text: str, parsed: ParsedConfig, name: str, value: Setting
) -> Iterator[Edit | str]:
    at, file = parsed.positions, Path(CONFIG_FILE)
    path = entry("parameters", name)
    quoted = f'"{str(value).lower() if isinstance(value, bool) else value}"'
    if path in at:
        if value == DEFAULT_SETTING:
            yield remove_field(file, text, at[path])
            return
        string = next((each for each in at if each.startswith(path) and "string_value" in each), "")
        if string:
            yield replace_value(file, text, at[string], quoted)
            return
    if value != DEFAULT_SETTING:
        yield f'parameters {{ key: "{name}" value {{ string_value: {quoted} }} }}'
