"""The streams of one instance."""

from __future__ import annotations

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.settings import Settings


class Streams:
    """`inputs` carries inputs to the GPU, `work` executions, `outputs` outputs back: it is `work` unless the model wants one of its own."""

    def __init__(self, cuda: Cuda, settings: Settings) -> None:
        self._cuda = cuda
        self.work = cuda.stream(settings.priority)
        self.inputs = cuda.stream(settings.priority)
        self.outputs = cuda.stream(settings.priority) if settings.output_stream else self.work

    def settle(self) -> None:
        """Return when none has anything to do."""
        for stream in (self.inputs, self.work, self.outputs):
            self._cuda.await_stream(stream)

    def close(self) -> None:
        """Destroy them."""
        for stream in {self.inputs, self.work, self.outputs}:
            self._cuda.end_stream(stream)
