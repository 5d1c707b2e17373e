from __future__ import annotations

import logging
import threading

import pytest

from tritonpy_backend_transformer import lane as lane_module
from tritonpy_backend_transformer.lane import Desk, Lane
from tritonpy_backend_transformer.sharing import Pace

from .listening import Counter, Ear, text

LOG = logging.LoggerAdapter(logging.getLogger("test"))


@pytest.fixture
def lanes(monkeypatch):
    """Starts lanes to which joining costs nothing."""
    monkeypatch.setattr(lane_module, "Pace", lambda: Pace(token=1e-9, step=1.0))
    started = []

    def start(writer, most=8, count=1):
        desk = Desk(most)
        started.append((desk, [Lane(f"lane {number}", desk, writer, LOG) for number in range(count)]))
        return desk

    yield start
    for desk, threads in started:
        desk.close()
        for thread in threads:
            thread.join()


class Answered(Ear):
    """Waits until the texts that it listens to have ended."""

    def __init__(self, count=1) -> None:
        super().__init__()
        self.texts = []
        self.count = count
        self._over = threading.Event()

    def text(self, *args, **options):
        self.texts.append(text(*args, ear=self, **options))
        return self.texts[-1]

    def heard(self) -> None:
        super().heard()
        self._look()

    def found(self, hypotheses) -> None:
        super().found(hypotheses)
        for one, hypothesis in zip(self.texts, hypotheses, strict=True):
            one.take(hypothesis)
        self._look()

    def failed(self, error) -> None:
        super().failed(error)
        self._over.set()

    def wait(self) -> None:
        assert self._over.wait(20), "the texts did not end"

    def _look(self) -> None:
        if len(self.texts) == self.count and all(each.finish for each in self.texts):
            self._over.set()


def test_texts_that_wait_together_run_together(lanes):
    writer, ear = Counter(), Answered(3)
    lanes(writer).submit([ear.text(max_tokens=4) for _ in range(3)])
    ear.wait()
    assert writer.calls == [3]
    assert [each.numbers for each in ear.texts] == [[3, 4, 5, 6]] * 3


def test_a_text_joins_what_runs_and_nothing_is_lost(lanes):
    ear = Answered(2)

    def during(step, texts):
        if len(ear.texts) == 1 and step == 3:
            desk.submit([ear.text(5, max_tokens=6)])

    writer = Counter(during)
    desk = lanes(writer)
    desk.submit([ear.text(3, max_tokens=20)])
    ear.wait()
    assert writer.calls == [1, 2]
    assert ear.texts[0].numbers == list(range(3, 23))
    assert ear.texts[1].numbers == list(range(5, 11))


def test_a_text_that_does_not_fit_waits_and_nobody_passes_it(lanes):
    ear, order = Answered(3), []

    def during(step, texts):
        order.append(texts[0].sampling.temperature)
        if len(ear.texts) == 1 and step == 3:
            desk.submit([ear.text(temperature=0.5, max_tokens=2), ear.text(max_tokens=2)])

    writer = Counter(during)
    desk = lanes(writer)
    desk.submit([ear.text(max_tokens=12)])
    ear.wait()
    assert writer.calls == [1, 1, 1]
    assert order == [None] * 12 + [0.5] * 2 + [None] * 2


def test_another_lane_takes_what_does_not_fit(lanes):
    ear = Answered(2)
    both = threading.Barrier(2)

    def during(step, texts):
        if step == 0:
            both.wait(20)

    writer = Counter(during)
    desk = lanes(writer, count=2)
    desk.submit([ear.text(max_tokens=2)])
    desk.submit([ear.text(temperature=0.5, max_tokens=2)])
    ear.wait()
    assert writer.calls == [1, 1]


def test_another_lane_takes_what_there_was_no_room_for(lanes):
    ear = Answered(2)
    both = threading.Barrier(2)

    def during(step, texts):
        if step == 0:
            both.wait(20)

    lanes(Counter(during), most=1, count=2).submit([ear.text(max_tokens=2), ear.text(max_tokens=2)])
    ear.wait()
    assert not both.broken


def test_a_call_has_no_more_texts_than_it_may(lanes):
    ear, writer = Answered(5), Counter()
    lanes(writer, most=2).submit([ear.text(max_tokens=2) for _ in range(5)])
    ear.wait()
    assert writer.calls == [2, 2, 1]


def test_what_nobody_wants_ends_and_the_others_go_on(lanes):
    stays, goes = Answered(), Answered()

    def during(step, texts):
        goes.wants = step < 2

    writer = Counter(during)
    lanes(writer).submit([stays.text(max_tokens=6), goes.text(max_tokens=6)])
    stays.wait()
    assert len(goes.texts[0].numbers) == 2
    assert goes.texts[0].finish == "cancelled"
    assert stays.texts[0].numbers == list(range(3, 9))


def test_what_nobody_wants_any_more_does_not_begin(lanes):
    ear, writer = Answered(), Counter()
    ear.wants = False
    lanes(writer).submit([ear.text()])
    ear.wait()
    assert writer.calls == []


def test_a_call_that_fails_fails_its_texts_and_no_others(lanes):
    def during(step, texts):
        if texts[0].sampling.max_tokens == 13:
            raise RuntimeError("No position encodings are defined")

    bad, good = Answered(), Answered()
    desk = lanes(Counter(during))
    desk.submit([bad.text(max_tokens=13)])
    bad.wait()
    desk.submit([good.text(max_tokens=2)])
    good.wait()
    assert [error.message for error in bad.errors] == ["CTranslate2 failed: No position encodings are defined"]
    assert good.errors == []


def test_a_call_that_brings_nothing_is_not_begun_again_and_again(lanes):
    class Silent(Counter):
        def write(self, texts, shared, on_token):
            self.calls.append(len(texts))

    ear, writer = Answered(), Silent()
    lanes(writer).submit([ear.text()])
    ear.wait()
    assert writer.calls == [1]
    assert "without a token" in ear.errors[0].message


def test_a_search_answers_as_a_whole(lanes):
    ear, writer = Answered(), Counter()
    lanes(writer).submit([ear.text(4, beam_width=2)])
    ear.wait()
    assert writer.calls == [1]
    assert ear.texts[0].numbers == [4]
