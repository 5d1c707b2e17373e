"""Answers questions with the documents next to this file: embed, search, generate."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

BEST = 2  # documents that the chat model sees
PROMPT = """<|im_start|>system
Answer the question with the given facts only, in one short sentence.<|im_end|>
<|im_start|>user
Facts:
{facts}

Question: {question}<|im_end|>
<|im_start|>assistant
"""


class TritonPythonModel:
    """Calls the models `embed` and `chat`, and streams the answer."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the documents. They are embedded by the first request."""
        path = os.path.join(pb_utils.get_model_dir(), "documents.txt")
        with open(path, encoding="utf-8") as file:
            self._documents = [line.strip() for line in file if line.strip()]
        self._vectors = None

    def execute(self, requests: list[Any]) -> None:
        """Answer each question."""
        for request in requests:
            sender = request.get_response_sender()
            try:
                self._answer(request, sender)
            except Exception as error:
                response = pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))
                sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _answer(self, request: Any, sender: Any) -> None:
        [question] = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
        limit = pb_utils.get_input_tensor_by_name(request, "max_tokens")
        if self._vectors is None:
            self._vectors = np.array([embedding(text) for text in self._documents])
        question = question.decode("utf-8").strip()
        scores = self._vectors @ embedding(question)
        facts = "\n".join(f"- {self._documents[each]}" for each in np.argsort(-scores)[:BEST])
        count = 60 if limit is None else int(limit.as_numpy()[0])
        sampling = {"temperature": 0, "max_tokens": count}
        inputs = [
            text_tensor("text_input", PROMPT.format(facts=facts, question=question)),
            text_tensor("sampling_parameters", json.dumps(sampling)),
            pb_utils.Tensor("stream", np.array([True])),
        ]
        for part in call("chat", inputs):
            if request.is_cancelled():
                break
            sender.send(pb_utils.InferenceResponse([text_tensor("text_output", part)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def embedding(text: str) -> Any:
    """Return the vector of a text, whose length is 1."""
    request = text_tensor("embedding_request", json.dumps({"input": text}))
    return np.array(json.loads("".join(call("embed", [request]))), np.float32)


def call(model: str, inputs: list[Any]) -> Iterator[str]:
    """Yield the texts that a model returns. Raises TritonModelException with its error."""
    request = pb_utils.InferenceRequest(
        model_name=model, requested_output_names=["text_output"], inputs=inputs
    )
    for response in request.exec(decoupled=True):
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        if response.output_tensors():
            yield pb_utils.get_output_tensor_by_name(response, "text_output").as_numpy()[0].decode()


def text_tensor(name: str, text: str) -> Any:
    """Return a tensor with one text."""
    return pb_utils.Tensor(name, np.array([text.encode("utf-8")], np.object_))
