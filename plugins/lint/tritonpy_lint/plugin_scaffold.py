"""Writes the package of a plugin: a module, its contract test, pyproject.toml and README.md.

The templates are in the folder `templates`, two per kind of hook: the module `KIND.py.txt` and its
test `test_KIND.py.txt`. A kind with a third one, `model_KIND.py.txt`, becomes a package with a
folder `backend`. They use the name `example`, which is replaced by the plugin's name.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tritonpy import StartupError, __version__

_TEMPLATES = files("tritonpy_lint") / "templates"
KINDS = tuple(
    sorted(
        path.name.removesuffix(".py.txt")
        for path in _TEMPLATES.iterdir()
        if path.name.endswith(".py.txt") and not path.name.startswith(("test_", "model_"))
    )
)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PROJECT = """[build-system]
requires = ["flit_core>=3.11,<4"]
build-backend = "flit_core.buildapi"

[project]
name = "{distribution}"
version = "0.1.0"
description = "A plugin of tritonpy: {kind} {name}"
requires-python = ">=3.11"
dependencies = ["tritonpy>={version}"{more}]

[project.optional-dependencies]
test = ["pytest>=8", "tritonpy-testing>={version}"]

[project.entry-points.tritonpy]
{name} = "{name}"
"""
_README = """# {distribution}

The {words} `{name}` for tritonpy. Change `{changed}`, and run its contract test:

```sh
pip install -e .[test]
pytest
```

{hint}`tritonpy plugins` lists it once it is installed.
"""
_CHECKS = ("lint_rule", "doctor_check")


@dataclass(frozen=True, slots=True)
class PluginScaffold:
    """What was written: the folder, and its files."""

    kind: str
    name: str
    folder: str
    files: list[str]


def init_plugin(kind: str, name: str, parent: Path) -> PluginScaffold:
    """Write the package of a plugin `name` into a new folder of `parent`.

    Raises StartupError for an unknown kind, a name that no module can have, and a folder that
    exists.
    """
    kind = kind.replace("-", "_").removesuffix("s")
    if kind not in KINDS:
        raise StartupError(f"there is no kind '{kind}'; kinds are: {', '.join(KINDS)}")
    name = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise StartupError(f"'{name}' is no name of a module: use lower case letters and _")
    folder = parent / name
    if folder.exists():
        raise StartupError(f"'{folder}' exists: nothing is overwritten")
    distribution = f"tritonpy-{name.replace('_', '-')}"
    more = ', "tritonpy-checks"' if kind in _CHECKS else ""
    words = kind.replace("_", " ")
    values = {
        "distribution": distribution, "kind": words, "name": name, "words": words,
        "version": __version__, "more": more,
    }  # fmt: skip
    folder_model = f"model_{kind}.py.txt"
    has_folder = (_TEMPLATES / folder_model).is_file()
    module = f"{name}/__init__.py" if has_folder else f"{name}.py"
    changed = f"{name}/backend/model.py" if has_folder else module
    hint = "" if has_folder else "The class it derives from documents every method. "
    content = {
        "pyproject.toml": _PROJECT.format(**values),
        "README.md": _README.format(**values, changed=changed, hint=hint),
        module: _filled(f"{kind}.py.txt", name),
        f"tests/test_{name}.py": _filled(f"test_{kind}.py.txt", name),
    }
    if has_folder:
        content[changed] = _filled(folder_model, name)
    for path, text in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return PluginScaffold(kind, name, str(folder), list(content))


def _filled(template: str, name: str) -> str:
    """Return a template with the plugin's name instead of `example`, and its class name."""
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    camel = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("example", name).replace("Example", camel)
