"""All code that imports PyTorch; import it through `runtime.import_pytorch()`.

Start at `instance` and `shared_model`.
"""

from __future__ import annotations

from tritonpy_backend_torch.pytorch.instance import PytorchInstance, description_device
from tritonpy_backend_torch.pytorch.shared_model import SharedModel

__all__ = ["PytorchInstance", "SharedModel", "description_device"]
