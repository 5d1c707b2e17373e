"""A running server checks configurations that clients send."""

from __future__ import annotations

import pytest

import tritonpy_lint
from tritonpy import InvalidArgument
from tritonpy.frontend import OperationCall
from tritonpy_lint.lint_operation import LintOperations, check_config
from tritonpy_testing import OperationGroupContract

TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
VALID = f'backend: "python"\n{TENSORS}'


class TestLintOperations(OperationGroupContract):
    plugin = tritonpy_lint
    plugin_class = LintOperations
    name = "lint"


def codes(body: object) -> list[str]:
    return [each["code"] for each in check_config(OperationCall(body=body))["findings"]]


def test_a_valid_configuration_has_no_finding() -> None:
    assert codes({"config": VALID}) == []


def test_findings_have_their_lines() -> None:
    report = check_config(OperationCall(body={"config": f"{VALID}dynamic_baching {{ }}\n"}))
    [finding] = report["findings"]
    assert (finding["code"], finding["line"]) == ("F007", 4)
    assert report["counts"]["error"] == 1


def test_name_and_files_are_part_of_the_check() -> None:
    assert codes({"config": f'name: "other"\n{VALID}', "name": "digits"}) == ["F003"]
    assert codes({"config": VALID, "files": ["v1/model.py"]}) == ["F001"]
    assert codes({"config": VALID, "files": ["1/model.py"]}) == []


@pytest.mark.parametrize("body", [None, [], {"config": 1}, {"config": VALID, "files": "x"},
                                  {"config": VALID, "name": ""}])  # fmt: skip
def test_another_body_is_refused(body: object) -> None:
    with pytest.raises(InvalidArgument):
        check_config(OperationCall(body=body))
