"""Every rule finds its bad example and accepts its good one."""

from __future__ import annotations

from pathlib import Path

import tritonpy_lint
from tritonpy.plugins import make_plugin_manager
from tritonpy_checks import Machine
from tritonpy_testing import LintRuleContract

SIGNATURE = (
    'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } '
    'output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }'
)
FIXED = SIGNATURE.replace("max_batch_size: 4", "").replace("[ 4 ]", "[ 1, 4 ]")
SPECIAL = {"E002", "S002", "X002", "M001", "E004", "F009"}
TABLE = make_plugin_manager(only="lint").table("tritonpy_lint_rules")


class Base(LintRuleContract):
    __test__ = False
    plugin = tritonpy_lint


def contract(code: str) -> type[LintRuleContract]:
    tensors = code[0] in "ST" and code not in {"S003", "S005", "S006"}
    attributes = {
        "__test__": True,
        "__module__": __name__,
        "plugin_class": TABLE[code].load(),
        "name": code,
        "signature": SIGNATURE if tensors else "",
    }
    return type(f"Test{code}", (Base,), attributes)


globals().update({f"Test{code}": contract(code) for code in sorted(set(TABLE) - SPECIAL)})


class TestFixedBatch(Base):
    __test__ = True
    plugin_class = TABLE["S002"].load()
    name = "S002"
    signature = SIGNATURE
    bad_signature = FIXED


class TestWritableFolder(Base):
    __test__ = True
    plugin_class = TABLE["X002"].load()
    name = "X002"

    def prepare(self, folder: Path) -> None:
        folder.chmod(0o777)


class TestMemory(Base):
    __test__ = True
    plugin_class = TABLE["M001"].load()
    name = "M001"
    machine = Machine(cores=2, memory=1024)


class TestMemberFails(Base):
    __test__ = True
    plugin_class = TABLE["E004"].load()
    name = "E004"
    other_models = {"broken": {"config.pbtxt": 'backend: "python"'}}  # noqa: RUF012


class TestEnsembleTensors(Base):
    __test__ = True
    plugin_class = TABLE["E002"].load()
    name = "E002"
    other_models = {  # noqa: RUF012
        "member": {
            "config.pbtxt": 'backend: "python"\n'
            'input { name: "IN" data_type: TYPE_INT64 dims: [ 4 ] }\n'
            'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n',
            "1/model.py": "class TritonPythonModel:\n    pass\n",
        }
    }


class TestBrokenModelFile(Base):
    __test__ = True
    plugin_class = TABLE["F009"].load()
    name = "F009"
    model_file_error = "the file is not an ONNX model"


def test_every_rule_has_a_contract_test() -> None:
    tested = {
        kind.name
        for kind in globals().values()
        if isinstance(kind, type) and issubclass(kind, Base) and kind is not Base
    }
    assert tested == set(TABLE)
    assert len(TABLE) >= 40
