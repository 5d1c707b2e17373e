"""The contract of lint rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tritonpy.plugins import make_plugin_manager
from tritonpy_checks import Edit, Finding, LintRule, Machine
from tritonpy_checks.model_reader import (
    InstalledBackend,
    ModelFileContent,
    ModelReader,
    RepositoryModel,
)
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.parse import model_config

_CODE = re.compile(r"[A-Z]+[0-9]{3}")


class LintRuleContract(PluginContract):
    """The contract of `LintRule`.

    Set `plugin_class` and its code as `name`.

    - `machine`: the machine that the examples are checked for.
    - `signature`: a configuration that stands for the tensors of the examples' model files.
    - `bad_signature`: the same for the example `bad` alone, if it differs.
    - `model_file_error`: the error text of the backend for the model file of `bad`.
    - `other_models`: the files of further models of the repository, by the model's name.
    """

    interface = LintRule
    hook = "tritonpy_lint_rules"
    machine: ClassVar[Machine] = Machine(cores=2)
    signature: ClassVar[str] = ""
    bad_signature: ClassVar[str] = ""
    model_file_error: ClassVar[str] = ""
    other_models: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    def prepare(self, folder: Path) -> None:
        """Change the folder of the example `bad` before it is read (optional)."""

    def findings(self, folder: Path, files: Mapping[str, str], *, bad: bool) -> list[Finding]:
        """Write the files of a model into `folder` and return the rule's findings."""
        for name, content in {"model": files, **self.other_models}.items():
            for path, text in content.items():
                target = folder / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                if path.endswith("/"):
                    target.mkdir(exist_ok=True)
                else:
                    target.write_text(text, encoding="utf-8")
        if bad:
            self.prepare(folder / "model")
        return self.check(folder, bad=bad)

    def check(self, folder: Path, *, bad: bool) -> list[Finding]:
        """Return the rule's findings in the model `model` of the repository `folder`."""
        table = make_plugin_manager().table("tritonpy_backends")
        backends = {name: InstalledBackend.of(name, entry.load()) for name, entry in table.items()}
        text = (self.bad_signature if bad else "") or self.signature
        content = ModelFileContent(
            model_config(text) if text else None, error=self.model_file_error if bad else ""
        )
        models = ModelReader(backends, self.machine).read(
            [RepositoryModel.of(path) for path in sorted(folder.iterdir())],
            lambda found: {model.name: content for model in found},
        )
        for name, model in models.items():
            model.loads = name == "model" or not model.problems
        rule: LintRule = self.plugin_class(self.name)
        return list(rule.check(models["model"]))

    def test_it_is_described(self) -> None:
        assert _CODE.fullmatch(self.name), f"'{self.name}' is not capital letters and 3 digits"
        assert self.plugin_class.title
        assert not self.plugin_class.title.endswith(".")
        assert self.plugin_class.reason.endswith(".")

    def test_the_bad_example_has_the_finding(self, tmp_path: Path) -> None:
        found = self.findings(tmp_path, self.plugin_class.bad, bad=True)
        assert found, f"{self.name} finds nothing in its bad example"
        assert {finding.code for finding in found} == {self.name}
        assert all(finding.message for finding in found)

    def test_the_good_example_has_no_finding(self, tmp_path: Path) -> None:
        assert self.findings(tmp_path, self.plugin_class.good, bad=False) == []

    def test_a_fix_removes_the_finding(self, tmp_path: Path) -> None:
        for finding in self.findings(tmp_path, self.plugin_class.bad, bad=True):
            if finding.fix is None or not all(
                isinstance(change, Edit) for change in finding.fix.changes
            ):
                continue
            edits = [change for change in finding.fix.changes if isinstance(change, Edit)]
            text = edits[0].file.read_text(encoding="utf-8")
            for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
                text = text[: edit.start] + edit.text + text[edit.end :]
            before = edits[0].file.read_text(encoding="utf-8")
            edits[0].file.write_text(text, encoding="utf-8")
            left = self.check(tmp_path, bad=True)
            edits[0].file.write_text(before, encoding="utf-8")
            assert finding.message not in [each.message for each in left], f"the fix left {left}"
