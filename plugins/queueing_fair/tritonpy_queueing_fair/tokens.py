"""The tokens of requests to language models, from the tensors that Triton's vllm_backend names."""

from __future__ import annotations

from tritonpy import InferRequest, InferResponse, Tensor

_BYTES_PER_TOKEN = 4  # of English text in common vocabularies


class TokenCounter:
    """Counts the tokens of the requests in flight. Callers provide the lock.

    A model reports them in `num_input_tokens` and `num_output_tokens`, if the request asks for
    them. For one that does not, they are estimated: four bytes of text are one token.
    """

    def __init__(self) -> None:
        self._inputs: dict[int, int] = {}  # what was counted of each request in flight

    def count(self, request: InferRequest, response: InferResponse) -> tuple[int, int]:
        """Return the further tokens of the prompt and of the text that a response reports."""
        outputs = {tensor.name: tensor for tensor in response.outputs}
        text = outputs.get("text_output")
        generated = _reported(outputs.get("num_output_tokens"))
        if generated is None:
            generated = _estimate(text)
        prompt = _reported(outputs.get("num_input_tokens"))
        counted = self._inputs.get(id(request), 0)
        if prompt is None and not counted and text is not None:
            prompt = _estimate(request.inputs.get("text_input"))
        self._inputs[id(request)] = max(counted, prompt or 0)
        return max(0, (prompt or 0) - counted), generated

    def forget(self, request: InferRequest) -> None:
        """Forget a request that has ended."""
        self._inputs.pop(id(request), None)


def _reported(tensor: Tensor | None) -> int | None:
    return None if tensor is None else int(tensor.numpy().sum())


def _estimate(tensor: Tensor | None) -> int:
    if tensor is None or tensor.datatype != "BYTES":
        return 0
    size = sum(len(each) for each in tensor.strings())
    return -(-size // _BYTES_PER_TOKEN)
