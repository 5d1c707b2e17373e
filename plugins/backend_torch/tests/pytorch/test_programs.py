from __future__ import annotations

import logging
import zipfile

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch.programs import read_program


class Plain(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Plain(), (torch.ones(2),)), path)
    return path


def rewritten(path, change):
    with zipfile.ZipFile(path) as old:
        content = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, data in content.items():
            new.writestr(name, change(data) if name.endswith("model.json") else data)


def test_a_program_is_read(program):
    assert read_program(program).module()(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_the_error_names_file_and_reason_without_a_traceback(program):
    rewritten(program, lambda text: text.replace(b"ops.aten.relu", b"ops.nosuch.relu"))
    with pytest.raises(InvalidArgument) as raised:
        read_program(program)
    text = str(raised.value)
    assert text.startswith(f"'{program}' is not a valid torch.export program: ")
    assert "nosuch" in text
    assert "Traceback" not in text


def test_the_log_handler_is_removed(program):
    read_program(program)
    rewritten(program, lambda _text: b"{}")
    with pytest.raises(InvalidArgument):
        read_program(program)
    assert [
        type(each).__name__
        for each in logging.getLogger("torch.export").handlers
        if type(each).__name__ == "_ErrorRecorder"
    ] == []
