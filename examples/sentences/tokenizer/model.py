"""Tokenizer of texts, with the library tokenizers; `tokenizer.json` is in the same folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import triton_python_backend_utils as pb_utils

MAX_TOKENS = 256


class TritonPythonModel:
    """`TEXT` [texts, 1] -> `input_ids` and `attention_mask`, int64 [texts, tokens]."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        config.add_input({"name": "TEXT", "data_type": "TYPE_STRING", "dims": [1]})
        for name in ("input_ids", "attention_mask"):
            config.add_output({"name": name, "data_type": "TYPE_INT64", "dims": [-1]})
        return config

    def initialize(self, args: dict[str, str]) -> None:
        file = Path(args["model_repository"], args["model_version"], "tokenizer.json")
        self.tokenizer = tokenizers.Tokenizer.from_file(str(file))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self.respond(request) for request in requests]

    def respond(self, request: Any) -> Any:
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().ravel()
        encoded = self.tokenizer.encode_batch([text.decode() for text in texts])
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("input_ids", np.array([each.ids for each in encoded], np.int64)),
                pb_utils.Tensor(
                    "attention_mask", np.array([each.attention_mask for each in encoded], np.int64)
                ),
            ]
        )
