"""Tiny PyTorch models, written in every format."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.export import Dim


class AddSub(torch.nn.Module):
    def forward(
        self,
        INPUT0: torch.Tensor,  # noqa: N803
        INPUT1: torch.Tensor,  # noqa: N803
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return INPUT0 + INPUT1, INPUT0 - INPUT1


class Linear(torch.nn.Module):
    """Maps three numbers to two: y = (x0 + x1 + x2, 2 (x0 + x1 + x2))."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0] * 3, [2.0] * 3]))
            self.layer.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


LINEAR_FILE = """
import torch


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)
"""
THREAD = 'parameters { key: "isolation" value { string_value: "thread" } } '
# No real compilation and no worker process, to save time.
COMPILED = 'parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value { string_value: "{\\"backend\\": \\"eager\\"}" } }'
EAGER = THREAD + COMPILED
LINEAR_IO = 'input { name: "x" data_type: TYPE_FP32 dims: 3 } output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 2 } '
LINEAR = 'name: "m" backend: "pytorch" max_batch_size: 8 ' + LINEAR_IO


class Models:
    """Writes models into a version folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def at(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name

    def script(self, module: torch.nn.Module, name: str = "model.pt") -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.script(module.eval()).save(str(self.at(name)))
        return self.at(name)

    def export(
        self,
        module: torch.nn.Module,
        arguments: tuple[Any, ...],
        shapes: Any = None,
        named: dict[str, Any] | None = None,
    ) -> Path:
        program = torch.export.export(module.eval(), arguments, named, dynamic_shapes=shapes)
        torch.export.save(program, self.at("model.pt2"))
        return self.at("model.pt2")

    def linear_export(self, **limits: int) -> Path:
        return self.export(Linear(), (torch.zeros(3, 3),), {"x": {0: Dim("batch", **limits)}})

    def python(self, text: str = LINEAR_FILE, weights: str | None = "model.safetensors") -> Path:
        self.at("model.py").write_text(text)
        if weights == "model.safetensors":
            save_file(Linear().state_dict(), self.at(weights))
        elif weights is not None:
            torch.save(Linear().state_dict(), self.at(weights))
        return self.at("model.py")
