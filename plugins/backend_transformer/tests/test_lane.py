from __future__ import annotations

import logging
import threading

import pytest

from tritonpy_backend_transformer import lane as lane_module
from tritonpy_backend_transformer.lane import Lane, TextQueue
from tritonpy_backend_transformer.shared_calls import CallTimes

from .fakes import FakeModel, RecordingListener, text

LOG = logging.LoggerAdapter(logging.getLogger("test"))


@pytest.fixture
def lanes(monkeypatch):
    """Return a function that starts lanes for which joining is free."""
    monkeypatch.setattr(lane_module, "CallTimes", lambda: CallTimes(token=1e-9, step=1.0))
    started = []

    def start(generation_model, most=8, count=1):
        queue = TextQueue(most)
        started.append(
            (
                queue,
                [Lane(f"lane {number}", queue, generation_model, LOG) for number in range(count)],
            )
        )
        return queue

    yield start
    for queue, threads in started:
        queue.close()
        for thread in threads:
            thread.join()


class TextWaiter(RecordingListener):
    """Waits until its texts have ended."""

    def __init__(self, count=1) -> None:
        super().__init__()
        self.texts = []
        self.count = count
        self._over = threading.Event()

    def text(self, *args, **options):
        self.texts.append(text(*args, listener=self, **options))
        return self.texts[-1]

    def on_progress(self) -> None:
        super().on_progress()
        self._check_end()

    def on_search_results(self, hypotheses) -> None:
        super().on_search_results(hypotheses)
        for one, hypothesis in zip(self.texts, hypotheses, strict=True):
            one.add_hypothesis(hypothesis)
        self._check_end()

    def on_error(self, error) -> None:
        super().on_error(error)
        self._over.set()

    def wait(self) -> None:
        assert self._over.wait(20), "the texts did not end"

    def _check_end(self) -> None:
        if len(self.texts) == self.count and all(each.finish for each in self.texts):
            self._over.set()


def test_waiting_texts_share_a_call(lanes):
    generation_model, listener = FakeModel(), TextWaiter(3)
    lanes(generation_model).submit([listener.text(max_tokens=4) for _ in range(3)])
    listener.wait()
    assert generation_model.calls == [3]
    assert [each.token_ids for each in listener.texts] == [[3, 4, 5, 6]] * 3


def test_a_text_joins_a_running_call_and_no_token_is_lost(lanes):
    listener = TextWaiter(2)

    def during(step, texts):
        if len(listener.texts) == 1 and step == 3:
            queue.submit([listener.text(5, max_tokens=6)])

    generation_model = FakeModel(during)
    queue = lanes(generation_model)
    queue.submit([listener.text(3, max_tokens=20)])
    listener.wait()
    assert generation_model.calls == [1, 2]
    assert listener.texts[0].token_ids == list(range(3, 23))
    assert listener.texts[1].token_ids == list(range(5, 11))


def test_a_text_that_does_not_fit_waits_and_is_not_overtaken(lanes):
    listener, order = TextWaiter(3), []

    def during(step, texts):
        order.append(texts[0].sampling.temperature)
        if len(listener.texts) == 1 and step == 3:
            queue.submit(
                [listener.text(temperature=0.5, max_tokens=2), listener.text(max_tokens=2)]
            )

    generation_model = FakeModel(during)
    queue = lanes(generation_model)
    queue.submit([listener.text(max_tokens=12)])
    listener.wait()
    assert generation_model.calls == [1, 1, 1]
    assert order == [None] * 12 + [0.5] * 2 + [None] * 2


def test_another_lane_takes_a_text_that_does_not_fit(lanes):
    listener = TextWaiter(2)
    both = threading.Barrier(2)

    def during(step, texts):
        if step == 0:
            both.wait(20)

    generation_model = FakeModel(during)
    queue = lanes(generation_model, count=2)
    queue.submit([listener.text(max_tokens=2)])
    queue.submit([listener.text(temperature=0.5, max_tokens=2)])
    listener.wait()
    assert generation_model.calls == [1, 1]


def test_another_lane_takes_texts_beyond_the_maximum(lanes):
    listener = TextWaiter(2)
    both = threading.Barrier(2)

    def during(step, texts):
        if step == 0:
            both.wait(20)

    lanes(FakeModel(during), most=1, count=2).submit(
        [listener.text(max_tokens=2), listener.text(max_tokens=2)]
    )
    listener.wait()
    assert not both.broken


def test_a_call_has_at_most_the_maximum_number_of_texts(lanes):
    listener, generation_model = TextWaiter(5), FakeModel()
    lanes(generation_model, most=2).submit([listener.text(max_tokens=2) for _ in range(5)])
    listener.wait()
    assert generation_model.calls == [2, 2, 1]


def test_a_cancelled_text_ends_and_others_continue(lanes):
    stays, goes = TextWaiter(), TextWaiter()

    def during(step, texts):
        goes.active = step < 2

    generation_model = FakeModel(during)
    lanes(generation_model).submit([stays.text(max_tokens=6), goes.text(max_tokens=6)])
    stays.wait()
    assert len(goes.texts[0].token_ids) == 2
    assert goes.texts[0].finish == "cancelled"
    assert stays.texts[0].token_ids == list(range(3, 9))


def test_a_cancelled_text_does_not_start(lanes):
    listener, generation_model = TextWaiter(), FakeModel()
    listener.active = False
    lanes(generation_model).submit([listener.text()])
    listener.wait()
    assert generation_model.calls == []


def test_a_failed_call_only_fails_its_texts(lanes):
    def during(step, texts):
        if texts[0].sampling.max_tokens == 13:
            raise RuntimeError("No position encodings are defined")

    bad, good = TextWaiter(), TextWaiter()
    queue = lanes(FakeModel(during))
    queue.submit([bad.text(max_tokens=13)])
    bad.wait()
    queue.submit([good.text(max_tokens=2)])
    good.wait()
    assert [error.message for error in bad.errors] == [
        "CTranslate2 failed: No position encodings are defined"
    ]
    assert good.errors == []


def test_a_call_without_tokens_is_not_repeated(lanes):
    class Silent(FakeModel):
        def write(self, texts, shared, on_token):
            self.calls.append(len(texts))

    listener, generation_model = TextWaiter(), Silent()
    lanes(generation_model).submit([listener.text()])
    listener.wait()
    assert generation_model.calls == [1]
    assert "without a token" in listener.errors[0].message


def test_a_beam_search_is_one_call(lanes):
    listener, generation_model = TextWaiter(), FakeModel()
    lanes(generation_model).submit([listener.text(4, beam_width=2)])
    listener.wait()
    assert generation_model.calls == [1]
    assert listener.texts[0].token_ids == [4]
