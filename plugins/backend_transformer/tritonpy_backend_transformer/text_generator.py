"""An instance of a model that generates text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import Batch, InferRequest, InferResponse, InstanceContext, ModelContext, TritonError
from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.generation import Generation
from tritonpy_backend_transformer.generation_models import Decoder, EncoderDecoder
from tritonpy_backend_transformer.lane import Lane, TextQueue
from tritonpy_backend_transformer.model_folder import FolderKind, ModelFolder
from tritonpy_backend_transformer.outputs import TextFormat
from tritonpy_backend_transformer.request_reader import GenerationRequest, RequestReader
from tritonpy_backend_transformer.settings import Settings


class TextGenerator:
    """Reads requests and lets its lanes generate their texts.

    It accepts as many requests as its lanes can hold. Others wait in the server's scheduler, where
    they can time out.
    """

    def __init__(
        self,
        folder: ModelFolder,
        settings: Settings,
        library: Any,
        model: ModelContext,
        instance: InstanceContext,
    ) -> None:
        self._folder = folder
        self._model = model
        end = folder.target.token_ids.get(folder.token("eos_token") or "</s>")
        self._end_ids = frozenset(() if end is None else (end,))
        outputs = [item.name for item in model.config.output]
        self._reader = RequestReader(
            folder, settings, outputs, model.config.model_transaction_policy.decoupled
        )
        lanes = settings.lane_count * len(library.device_index)
        instance.max_open = lanes * settings.max_sequences
        generator = (Decoder if folder.kind is FolderKind.DECODER else EncoderDecoder)(
            folder, library
        )
        self._queue = TextQueue(settings.max_sequences)
        self._lanes = [
            Lane(f"{instance.name} lane {each}", self._queue, generator, model.log)
            for each in range(lanes)
        ]

    def execute(self, batch: Batch) -> None:
        """Queue the texts of all requests. An invalid request gets an error response."""
        for request in batch.requests:
            try:
                parsed = self._reader.read(request)
                texts = self._texts(request, parsed)
            except TritonError as error:
                request.respond(InferResponse.failed(request, error))
            else:
                if not batch.input_end_ns:
                    batch.stamp()
                self._queue.submit(texts[:1] if parsed.sampling.beam_width > 1 else texts)

    def close(self) -> None:
        """Stop the lanes after the queued texts are generated."""
        self._queue.close()
        for lane in self._lanes:
            lane.join()

    def _texts(self, request: InferRequest, parsed: GenerationRequest) -> Sequence[Continuation]:
        sampling = parsed.sampling
        generation = Generation(
            request, self._model, parsed.outputs,
            sampling.stream_interval if parsed.stream else None,
            TextFormat(parsed.echoed_prompt, self._folder.tokenizer, self._folder.target.tokens),
        )  # fmt: skip
        banned = tuple(
            dict.fromkeys(run for word in sampling.bad_words for run in self._runs(word))
        )
        generation.texts += [
            Continuation(
                generation,
                parsed.prompt,
                sampling,
                self._end_ids,
                self._folder.tokenizer,
                index,
                banned,
            )
            for index in range(sampling.n)
        ]
        return generation.texts

    def _runs(self, word: str) -> list[tuple[int, ...]]:
        """Return the tokens of a word at the beginning of a text and after a space."""
        tokenizer, token_ids = self._folder.tokenizer, self._folder.target.token_ids
        if tokenizer is None:
            return []
        runs = [tokenizer.encode(form, add_special_tokens=False) for form in (word, f" {word}")]
        return [
            tuple(token_ids[token] for token in run)
            for run in runs
            if run and all(token in token_ids for token in run)
        ]
