"""Searches on simulated servers whose best configuration is known."""

from __future__ import annotations

import msgspec
import pytest

from tritonpy_analyzer.goals import parse_goals
from tritonpy_analyzer.space import BATCHING, DELAY, INSTANCES, Limits
from tritonpy_analyzer.study import Journal, RecordingMeasurer
from tritonpy_load_generator.options import LoadLevel

from .simulated import Law, SimulatedMeasurer, run_search, toy_space, true_rate

LIMIT_S = 0.060
GOALS = parse_goals(["p99<60ms"])
LAW = Law()
_rates: dict[str, float] = {}


def rate_of(candidate, law=LAW):
    key = f"{candidate.key} {law.fixed_s} {law.penalty}"
    if key not in _rates:
        _rates[key] = true_rate(law, candidate, LIMIT_S, requests=8_000)
    return _rates[key]


BEST = toy_space().present
for name, value in (("max_batch_size", 16), (INSTANCES, 6), (DELAY, 10_000)):
    BEST = BEST.with_setting("toy", name, value)


def test_the_best_configuration_is_found_whatever_the_noise():
    good = 0
    for seed in range(6):
        search = run_search(
            toy_space(), GOALS, SimulatedMeasurer(LAW, seed), seconds=180, seed=seed, cores=2
        )
        good += rate_of(search.findings.leader) >= 0.95 * rate_of(BEST)
    assert good >= 5


def test_the_gain_covers_the_truth_and_the_checked_rate_keeps_the_limit():
    search = run_search(toy_space(), GOALS, SimulatedMeasurer(LAW, 4), seconds=180, cores=2)
    found = search.findings
    truth = rate_of(found.leader) / rate_of(toy_space().present)
    assert found.gain.verdict == "better"
    assert found.gain.low < truth < found.gain.high
    rate, windows = found.verified
    assert rate <= 1.03 * rate_of(found.leader)
    assert sum(each.latency.total for each in windows) >= 2000


def test_the_time_is_kept():
    measurer = SimulatedMeasurer(LAW, 1)
    run_search(toy_space(), GOALS, measurer, seconds=60, cores=2)
    assert 40 < measurer.elapsed_s < 66


def test_the_present_configuration_is_kept_if_it_is_the_best():
    best = toy_space(batch=16, instances=6, limits=Limits(16, 6))
    search = run_search(best, GOALS, SimulatedMeasurer(LAW, 2), seconds=120, cores=2)
    found = search.findings
    assert found.leader == best.present or found.gain.verdict != "better" or found.gain.low < 1.06


def test_equal_seeds_take_equal_paths():
    keys = []
    for _ in range(2):
        search = run_search(toy_space(), GOALS, SimulatedMeasurer(LAW, 3), seconds=90, cores=2)
        keys.append([each.key for each in search.findings.merits])
    assert keys[0] == keys[1]


def test_a_limit_that_no_configuration_keeps_is_named():
    goals = parse_goals(["p99<2ms"])
    search = run_search(toy_space(), goals, SimulatedMeasurer(LAW, 1), seconds=40, cores=2)
    assert "p99<2 ms" in search.violation()


def test_configurations_that_need_too_much_memory_are_not_measured():
    goals = parse_goals(["p99<60ms", "memory.cpu<260MiB"])
    search = run_search(toy_space(), goals, SimulatedMeasurer(LAW, 1), seconds=90, cores=2)
    found = search.findings
    assert found.pruned
    assert all(int(each.of("toy")[INSTANCES]) > 3 for each in found.pruned)
    assert int(found.leader.of("toy")[INSTANCES]) <= 3
    assert not set(found.pruned) & set(found.merits)


def test_a_busy_machine_is_reported():
    search = run_search(
        toy_space(), GOALS, SimulatedMeasurer(LAW, 1, drop_every=1), seconds=60, cores=2
    )
    assert search.findings.too_noisy
    assert search.findings.count < 12


def test_a_few_dropped_windows_do_not_matter():
    search = run_search(
        toy_space(), GOALS, SimulatedMeasurer(LAW, 1, drop_every=5), seconds=240, cores=2
    )
    assert not search.findings.too_noisy
    assert search.findings.gain.verdict == "better"


def test_the_number_of_measured_configurations_can_be_limited():
    search = run_search(
        toy_space(), GOALS, SimulatedMeasurer(LAW, 1), seconds=180, cores=2, max_trials=5
    )
    assert len({*search.findings.merits, *search.findings.out}) <= 5


@pytest.mark.parametrize("level", [None, LoadLevel(32.0)])
def test_without_a_latency_limit_the_throughput_is_maximized(level):
    search = run_search(
        toy_space(), parse_goals([]), SimulatedMeasurer(LAW, 1), seconds=90, cores=2, level=level
    )
    found = search.findings
    assert found.leader.of("toy")[BATCHING]
    assert found.gain.low > 1.3


def test_a_latency_can_be_minimized_at_a_fixed_rate():
    goals = parse_goals([], minimize=["p99"])
    search = run_search(
        toy_space(), goals, SimulatedMeasurer(LAW, 1), seconds=240, cores=2,
        level=LoadLevel(400.0, "poisson"),
    )  # fmt: skip
    assert search.findings.gain.low > 1.0


def test_two_objectives_have_a_front_without_dominated_configurations():
    goals = parse_goals(["p99<60ms"], ["rate"], ["memory.cpu"])
    search = run_search(toy_space(), goals, SimulatedMeasurer(LAW, 1), seconds=180, cores=2)
    front = search.findings.front
    assert len(front) >= 2
    for candidate, merits in front.items():
        for other, theirs in front.items():
            assert candidate == other or any(x > y for x, y in zip(merits, theirs, strict=True))


class _Killed(Exception):
    pass


class KilledMeasurer:
    """Fails after some windows, as a killed process would."""

    def __init__(self, measurer, after):
        self._measurer, self._left = measurer, after
        self.elapsed_s = 0.0

    async def measure(self, candidate, level, seconds):
        if not self._left:
            raise _Killed
        self._left -= 1
        window = await self._measurer.measure(candidate, level, seconds)
        self.elapsed_s = self._measurer.elapsed_s
        return window


def test_a_killed_search_continues_where_it_ended(tmp_path):
    def journal():
        return Journal(tmp_path / "study")

    journal().begin({"options": "1"}, {}, resume=False)
    killed = RecordingMeasurer(KilledMeasurer(SimulatedMeasurer(LAW, 1), 40), journal())
    with pytest.raises(_Killed):
        run_search(toy_space(), GOALS, killed, seconds=90, cores=2)
    assert len(journal().windows()) == 40
    assert journal().begin({"options": "1"}, {}, resume=True) == ""

    class Continued(SimulatedMeasurer):
        pass

    live = Continued(LAW, 1)
    resumed = run_search(
        toy_space(), GOALS, RecordingMeasurer(live, journal()), seconds=90, cores=2
    )
    whole = run_search(toy_space(), GOALS, SimulatedMeasurer(LAW, 1), seconds=90, cores=2)
    assert live.windows == len(journal().windows()) - 40
    assert live.elapsed_s < 90
    tried = {*resumed.findings.merits, *resumed.findings.out}
    assert abs(len(tried) - len({*whole.findings.merits, *whole.findings.out})) <= 3


def test_another_model_or_goal_starts_a_new_study_with_the_reason(tmp_path):
    made = Journal(tmp_path)
    assert made.begin({"options": "1"}, {}, resume=True) == f"there is no study in {tmp_path}"
    assert made.begin({"options": "1"}, {}, resume=True) == ""
    assert made.begin({"options": "2", "file 1/m": "x"}, {}, resume=True) == (
        "changed since: file 1/m, options"
    )


def test_an_incomplete_last_line_is_ignored(tmp_path):
    made = Journal(tmp_path)
    made.begin({}, {}, resume=False)
    space = toy_space()
    import asyncio

    window = asyncio.run(
        SimulatedMeasurer(LAW).measure(space.present, LoadLevel(20.0, "poisson"), 1.0)
    )
    made.append(window)
    with (tmp_path / "windows.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(window)[:50])
    assert made.windows() == [window]
