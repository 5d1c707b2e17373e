"""An instance of a model that generates text: reads requests, and has its lanes continue them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import Batch, InferRequest, InferResponse, InstanceContext, ModelContext, TritonError
from tritonpy_backend_transformer.asking import Asked, Reader
from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.folder import Kind, ModelFolder
from tritonpy_backend_transformer.generation import Generation
from tritonpy_backend_transformer.lane import Desk, Lane
from tritonpy_backend_transformer.outputs import Wording
from tritonpy_backend_transformer.settings import Settings
from tritonpy_backend_transformer.writers import Decoder, EncoderDecoder


class Studio:
    """Takes requests at any time, as many as its lanes have room for; the others wait with the server's scheduler, where they may time out."""

    def __init__(
        self, folder: ModelFolder, wanted: Settings, library: Any, model: ModelContext, instance: InstanceContext
    ) -> None:
        self._folder = folder
        self._model = model
        end = folder.target.numbers.get(folder.token("eos_token") or "</s>")
        self._ends = frozenset(() if end is None else (end,))
        outputs = [item.name for item in model.config.output]
        self._reader = Reader(folder, wanted, outputs, model.config.model_transaction_policy.decoupled)
        lanes = wanted.parallel * len(library.device_index)
        instance.max_open = lanes * wanted.most_sequences
        writer = (Decoder if folder.kind is Kind.DECODER else EncoderDecoder)(folder, library)
        self._desk = Desk(wanted.most_sequences)
        self._lanes = [Lane(f"{instance.name} lane {each}", self._desk, writer, model.log) for each in range(lanes)]

    def answer(self, batch: Batch) -> None:
        """Read the requests and let them wait for a lane; one that cannot be read is refused."""
        for request in batch.requests:
            try:
                asked = self._reader.read(request)
                texts = self._texts(request, asked)
            except TritonError as error:
                request.respond(InferResponse.failed(request, error))
            else:
                if not batch.input_end_ns:
                    batch.stamp()
                self._desk.submit(texts[:1] if asked.sampling.beam_width > 1 else texts)

    def close(self) -> None:
        """End the lanes; what waits is still generated."""
        self._desk.close()
        for lane in self._lanes:
            lane.join()

    def _texts(self, request: InferRequest, asked: Asked) -> Sequence[Continuation]:
        sampling = asked.sampling
        generation = Generation(
            request, self._model, asked.outputs,
            sampling.stream_interval if asked.stream else None,
            Wording(asked.before, self._folder.tokenizer, self._folder.target.tokens),
        )  # fmt: skip
        bad = tuple(dict.fromkeys(run for word in sampling.bad_words for run in self._runs(word)))
        generation.texts += [
            Continuation(generation, asked.prompt, sampling, self._ends, self._folder.tokenizer, number, bad)
            for number in range(sampling.n)
        ]
        return generation.texts

    def _runs(self, word: str) -> list[tuple[int, ...]]:
        """Return the tokens of a word, at the beginning of a text and behind a space."""
        tokenizer, numbers = self._folder.tokenizer, self._folder.target.numbers
        if tokenizer is None:
            return []
        runs = [tokenizer.encode(form, special=False) for form in (word, f" {word}")]
        return [
            tuple(numbers[token] for token in run) for run in runs if run and all(token in numbers for token in run)
        ]
