from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch.weights import state_dict

CPU = torch.device("cpu")
WEIGHTS = {"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.bfloat16)}


def same(found):
    return found.keys() == WEIGHTS.keys() and all(
        torch.equal(found[name], WEIGHTS[name]) for name in WEIGHTS
    )


def test_safetensors_are_loaded(tmp_path):
    save_file(WEIGHTS, tmp_path / "model.safetensors")
    assert same(state_dict(tmp_path / "model.safetensors", CPU, allow_pickles=False))


def test_sharded_safetensors_are_loaded(tmp_path):
    for name, tensor in WEIGHTS.items():
        save_file({name: tensor}, tmp_path / f"{name}.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in WEIGHTS}}))
    assert same(state_dict(index, CPU, allow_pickles=False))


def test_a_shard_outside_the_folder_is_rejected(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../a.safetensors"}}))
    with pytest.raises(
        InvalidArgument, match=r"'\.\./a\.safetensors' is outside the model's folder"
    ):
        state_dict(index, CPU, allow_pickles=False)


def test_torch_save_files_are_loaded(tmp_path):
    torch.save(WEIGHTS, tmp_path / "model.pt")
    assert same(state_dict(tmp_path / "model.pt", CPU, allow_pickles=False))


def test_other_content_is_rejected(tmp_path):
    torch.save([1, 2], tmp_path / "model.pt")
    with pytest.raises(InvalidArgument, match="contains a list, not a state dict"):
        state_dict(tmp_path / "model.pt", CPU, allow_pickles=False)


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt", "model.safetensors.index.json"])
def test_a_damaged_file_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(InvalidArgument, match=f"the weights in '{path}' cannot be read: "):
        state_dict(path, CPU, allow_pickles=False)
