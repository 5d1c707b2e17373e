"""Inference clients over either protocol, with tensors by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import np_to_triton_dtype

from tests.conftest import TIMEOUT_S, ServerProcess

Array = npt.NDArray[Any]
PROTOCOLS = ("http", "grpc")


class InferenceClient:
    """A client of a server over one protocol, for one thread."""

    def __init__(self, module: ModuleType, client: Any) -> None:
        self._module = module
        self.client = client

    def infer(self, model: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return every output by name."""
        tensors = []
        for name, array in inputs.items():
            tensors.append(
                self._module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            )
            tensors[-1].set_data_from_numpy(array)
        result = self.client.infer(model, tensors)
        response = result.get_response()
        outputs = response["outputs"] if isinstance(response, dict) else response.outputs
        names = [each["name"] if isinstance(each, dict) else each.name for each in outputs]
        return {name: result.as_numpy(name) for name in names}

    def infer_single(self, model: str, data: Array) -> Array:
        """Return the only output for the only input, whatever their names."""
        metadata = self.client.get_model_metadata(model)
        described = metadata["inputs"] if isinstance(metadata, dict) else metadata.inputs
        [only] = [each["name"] if isinstance(each, dict) else each.name for each in described]
        [response] = self.infer(model, {only: data}).values()
        return response


@contextmanager
def inference_client(served: ServerProcess, protocol: str) -> Iterator[InferenceClient]:
    """Return a client over `http` or `grpc`."""
    if protocol == "http":
        with tritonclient.http.InferenceServerClient(
            served.http, network_timeout=TIMEOUT_S
        ) as client:
            yield InferenceClient(tritonclient.http, client)
    else:
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            yield InferenceClient(tritonclient.grpc, client)


def texts(*lines: str) -> Array:
    """Return the tensor [texts, 1] of byte strings."""
    return np.array([[line.encode()] for line in lines], np.object_)
