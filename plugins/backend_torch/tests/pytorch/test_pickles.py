from __future__ import annotations

import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from tritonpy import TritonError
from tritonpy_backend_torch.pytorch.pickles import is_harmless

from ..models import EAGER, LINEAR, Linear

X = np.array([[1, 2, 3]], np.float32)
ALLOWED = 'parameters { key: "ALLOW_PICKLES" value { string_value: "true" } }'


class Intruder:
    """Loading its pickle creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "executed"


def refusal(load, text=LINEAR + EAGER, **options):
    with pytest.raises(TritonError) as refused, load(text, **options):
        pass
    return refused.value.message


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_with_code_is_not_executed(models, load, mark, zipped):
    torch.save(
        {"layer": Intruder(mark)}, models.at("model.pt"), _use_new_zipfile_serialization=zipped
    )
    assert "loading it would execute code" in refusal(load)
    models.python(weights=None)  # now it contains the weights of a class
    assert "loading it would execute code" in refusal(load)
    assert not mark.exists()


@pytest.mark.parametrize("way", ["parameter", "option"])
def test_a_pickled_module_is_served_if_allowed(models, load, way):
    torch.save(Linear(), models.at("model.pt"))
    assert "set the model's parameter ALLOW_PICKLES to true if you trust its source" in refusal(
        load
    )
    allowed = {"allow_pickles": True} if way == "option" else {}
    with load(LINEAR + EAGER + (ALLOWED if way == "parameter" else ""), **allowed) as harness:
        [[answer]] = harness.execute(harness.request({"x": X}))
    assert answer.outputs[0].numpy().tolist() == [[6, 12]]


def test_a_state_dict_is_not_a_model(models, load):
    torch.save(Linear().state_dict(), models.at("model.pt"))
    assert (
        "contains a OrderedDict, not a model; weights need a file with their class next to them, as 'model.py'"
        in refusal(load)
    )


def rewritten(path, change):
    """Rewrite the archive at `path` with `change(name, content)` for every record."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, change(name, data))


def pickled(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_the_examples_inside_a_program_do_not_execute_code(models, load, mark):
    path = models.linear_export()
    rewritten(
        path,
        lambda name, data: (
            pickled(((Intruder(mark),), {})) if name.endswith("sample_inputs/model.pt") else data
        ),
    )
    assert "The pickle 'data/sample_inputs/model.pt' in '" in refusal(
        load, 'name: "m" backend: "pytorch"'
    )
    assert not mark.exists()


def test_the_weights_inside_a_program_do_not_execute_code(models, load, mark):
    def change(name, data):
        if name.endswith("weights_config.json"):
            config = json.loads(data)
            for entry in config["config"].values():
                entry["use_pickle"] = True
            return json.dumps(config)
        return pickled(Intruder(mark)) if "/weights/weight_" in name else data

    rewritten(models.linear_export(), change)
    assert "The pickle 'data/weights/weight_0' in '" in refusal(
        load, 'name: "m" backend: "pytorch"'
    )
    assert not mark.exists()


def test_tensors_and_containers_are_harmless_and_damage_is_an_error():
    assert is_harmless(io.BytesIO(pickled({"a": [torch.ones(2)], "b": 3})))
    assert is_harmless(io.BytesIO(b""))
    assert not is_harmless(io.BytesIO(pickle.dumps(sys.exit, 2)))
    with pytest.raises(RuntimeError, match="PytorchStreamReader"):
        is_harmless(io.BytesIO(pickled({"a": torch.ones(2)})[:-100]))
