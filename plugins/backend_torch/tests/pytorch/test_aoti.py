from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
import torch
from torch.export import Dim

from tritonpy import TritonError

from ..models import THREAD, AddSub

ALONE = (
    'name: "m" backend: "pytorch" platform: "torch_aoti" default_model_filename: "model.pt2" '
    + THREAD
)
ONE = np.ones((2, 16), np.int32)


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def refusal(load, text):
    with pytest.raises(TritonError) as refused, load(text):
        pass
    return refused.value.message


def rewritten(path, change):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            changed = change(name, data)
            if changed is not None:
                archive.writestr(name, changed)


@pytest.mark.parametrize(
    "names", [("ARGS[0]", "ARGS[1]", "RESULT[1]"), ("INPUT__0", "INPUT__1", "OUTPUT__1")]
)
def test_both_naming_conventions_of_triton_are_supported(package, load, names):
    first, second, result = names
    text = f"""{ALONE} max_batch_size: 4 input [{{ name: "{second}" data_type: TYPE_INT32 dims: 16 }},
        {{ name: "{first}" data_type: TYPE_INT32 dims: 16 }}] output {{ name: "{result}" data_type: TYPE_INT32 dims: 16 }}"""
    with load(text) as harness:
        [[answer]] = harness.execute(harness.request({first: 5 * ONE, second: 2 * ONE}))
    assert answer.outputs[0].numpy().tolist() == (3 * ONE).tolist()


def test_an_unknown_name_is_rejected(package, load):
    text = f"""{ALONE} max_batch_size: 4 input [{{ name: "a" data_type: TYPE_INT32 dims: 16 }},
        {{ name: "ARGS[1]" data_type: TYPE_INT32 dims: 16 }}] output {{ name: "RESULT[0]" data_type: TYPE_INT32 dims: 16 }}"""
    assert refusal(load, text).startswith(
        'Input "a" for model instance "m" is not found in model input map.'
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("precision", "bf16"), ("CHANNELS_LAST", "true"), ("TORCH_COMPILE_OPTIONAL_PARAMETERS", "{}")],
)
def test_a_compiled_package_rejects_other_settings(package, load, key, value):
    assert (
        "is compiled: remove the parameters that change its precision, layout or compilation"
        in refusal(load, ALONE + parameter(key, value))
    )


def test_a_package_for_another_device_is_refused(package, load):
    def change(name, data):
        return (
            json.dumps({**json.loads(data), "AOTI_DEVICE_KEY": "cuda"})
            if name.endswith("_metadata.json")
            else data
        )

    rewritten(package, change)
    assert refusal(load, ALONE) == f"'{package}' was compiled for cuda, the instance runs on cpu"


def test_a_package_without_source_needs_a_configuration(package, load, caplog):
    rewritten(package, lambda name, data: None if name.endswith(".cpp") else data)
    assert "at least one input, none were specified. The file does not describe them" in refusal(
        load, ALONE
    )
    assert "skipping model configuration auto-complete for 'm'" in caplog.text
    io = "".join(
        f'{kind} {{ name: "{name}" data_type: TYPE_INT32 dims: 16 }} '
        for kind, name in (("input", "ARGS[0]"), ("input", "ARGS[1]"), ("output", "RESULT[0]"))
    )
    with load(ALONE + " max_batch_size: 2 " + io) as harness:
        [[answer]] = harness.execute(harness.request({"ARGS[0]": ONE, "ARGS[1]": ONE}))
    assert answer.outputs[0].numpy().tolist() == (2 * ONE).tolist()


def test_an_included_program_completes_the_signature(package, load, tmp_path):
    zeros, rows = torch.zeros(3, 16, dtype=torch.int32), {0: Dim("rows", max=3)}
    program = torch.export.export(
        AddSub(), (zeros, zeros), dynamic_shapes={"INPUT0": rows, "INPUT1": rows}
    )
    torch.export.save(program, tmp_path / "program.pt2")
    with (
        zipfile.ZipFile(tmp_path / "program.pt2") as source,
        zipfile.ZipFile(package, "a") as target,
    ):
        target.writestr("model/models/model.json", source.read("program/models/model.json"))
    with load(ALONE) as harness:
        config = harness.model.config
    assert config.max_batch_size == 3
    assert [item.name for item in (*config.input, *config.output)] == [
        "ARGS[0]",
        "ARGS[1]",
        "RESULT[0]",
        "RESULT[1]",
    ]


def test_instances_with_shared_weights_run_concurrently(package, load):
    text = (
        ALONE
        + parameter("ENABLE_WEIGHT_SHARING", "true")
        + "instance_group { count: 2 kind: KIND_CPU }"
    )
    with load(text) as harness:
        [[answer]] = harness.execute(harness.request({"ARGS[0]": ONE, "ARGS[1]": ONE}))
    assert answer.outputs[0].numpy().tolist() == (2 * ONE).tolist()
