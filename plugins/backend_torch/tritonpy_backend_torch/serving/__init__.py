"""Everything that imports PyTorch; `runtime.serving()` is the way in."""

from __future__ import annotations

from tritonpy_backend_torch.serving.instance import Instance, described_device
from tritonpy_backend_torch.serving.networks import Networks

__all__ = ["Instance", "Networks", "described_device"]
