"""CUDA streams of one instance."""

from __future__ import annotations

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.settings import ModelSettings


class Streams:
    """Streams for copying inputs (`inputs`), executing (`compute`) and copying outputs (`outputs`).

    `outputs` is `compute` unless the model configures a separate stream.
    """

    def __init__(self, cuda: Cuda, settings: ModelSettings) -> None:
        self._cuda = cuda
        self.compute = cuda.create_stream(settings.priority)
        self.inputs = cuda.create_stream(settings.priority)
        self.outputs = (
            cuda.create_stream(settings.priority) if settings.output_stream else self.compute
        )

    def synchronize(self) -> None:
        """Block until no stream has work."""
        for stream in (self.inputs, self.compute, self.outputs):
            self._cuda.synchronize_stream(stream)

    def close(self) -> None:
        """Destroy the streams."""
        for stream in {self.inputs, self.compute, self.outputs}:
            self._cuda.destroy_stream(stream)
