"""Remote repositories are checked by their listing and their small files."""

from __future__ import annotations

import pytest

from tritonpy import Unavailable, hookimpl
from tritonpy.plugins import make_plugin_manager
from tritonpy.repository import ModelListing, Repository
from tritonpy_lint import linting
from tritonpy_lint.linting import LintOptions, lint

TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
FILES = {
    "good": {"config.pbtxt": f'backend: "python"\n{TENSORS}', "1/model.py": "TritonPythonModel = f()"},
    "bad": {"config.pbtxt": f'backend: "onnxruntime"\nnonsense: 1\n{TENSORS}', "1/model.onnx": ""},
}  # fmt: skip
peeked: list[str] = []


class Remote(Repository):
    """A repository in memory."""

    def scan(self):
        if "secret" in self.context.url:
            raise Unavailable(f"{self.context.url} does not answer")
        return {
            name: ModelListing(name, "1", dict.fromkeys(files, "1"))
            for name, files in FILES.items()
        }

    def peek(self, listing, path):
        peeked.append(path)
        return FILES[listing.name][path].encode()


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_repositories():
        return {"toy": Remote}


@pytest.fixture(autouse=True)
def scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the scheme toy://."""

    def with_toy(**options: object):
        manager = make_plugin_manager(**options)
        manager.register(Plugin, "toy")
        return manager

    monkeypatch.setattr(linting, "make_plugin_manager", with_toy)


def test_small_files_are_read_and_model_files_are_not() -> None:
    found = lint(LintOptions(paths=["toy://bucket/models"]))
    assert [(each.model, each.code, each.line) for each in found.findings] == [("bad", "F007", 2)]
    assert sorted(model.name for model in found.models) == ["bad", "good"]
    assert "1/model.onnx" not in peeked
    assert "1/model.py" in peeked


def test_a_repository_that_does_not_answer_is_a_finding_without_its_password() -> None:
    [finding] = lint(LintOptions(paths=["toy://user:secret@bucket/models"])).findings
    assert finding.code == "R001"
    assert "secret" not in finding.message + finding.file
