"""Snippets of all pages are valid: model configurations, server.yaml, Python, JSON and shell.

The pages in test_readme.py are run from start to end as well.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
import yaml

from tritonpy.config import decode_server_config, read_config_text
from tritonpy_protos.model_config_pb2 import ModelConfig

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
    *sorted(ROOT.glob("libs/*/README.md")),
    *sorted(ROOT.glob("*.md")),
]
BLOCK = re.compile(r"^( *)```([\w-]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
FIELDS = "|".join(ModelConfig.DESCRIPTOR.fields_by_name)
CONFIG = re.compile(rf"(?:\s*#.*\n)*\s*(?:{FIELDS})\s*[:{{\[]")


def snippets(page: Path) -> list[tuple[str, str]]:
    """Return language and code of each block; a model configuration has the language pbtxt."""
    found = []
    for indent, language, code in BLOCK.findall(page.read_text("utf-8")):
        text = textwrap.dedent(code) if indent else code
        found.append(("pbtxt" if not language and CONFIG.match(text) else language, text))
    return found


SNIPPETS = [
    pytest.param(language, code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, (language, code) in enumerate(snippets(page), start=1)
    if language in {"pbtxt", "yaml", "python", "json", "sh", "bash"}
]


def check_model_config(code: str) -> None:
    assert read_config_text(code).problems == []


def check_yaml(code: str) -> None:
    document = yaml.safe_load(code)
    if isinstance(document, dict) and "static_resources" not in document:
        decode_server_config(document)


def check_shell(code: str) -> None:
    subprocess.run(["bash", "-n"], input=code, text=True, check=True)


CHECKS = {
    "pbtxt": check_model_config,
    "yaml": check_yaml,
    "python": ast.parse,
    "json": json.loads,
    "sh": check_shell,
    "bash": check_shell,
}


@pytest.mark.parametrize(("language", "code"), SNIPPETS)
def test_a_snippet_is_valid(language: str, code: str) -> None:
    CHECKS[language](code)


def test_model_configurations_are_recognized() -> None:
    assert CONFIG.match("max_batch_size: 8\n")
    assert CONFIG.match("# a comment\ninstance_group [ { count: 2 } ]\n")
    assert not CONFIG.match("models/\n  digits/\n")
    assert sum(parameter.values[0] == "pbtxt" for parameter in SNIPPETS) > 20
