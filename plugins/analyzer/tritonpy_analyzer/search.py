"""The search: a model of the cost, then races of the most promising candidates, in time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import msgspec

from tritonpy_analyzer.cost_model import Execution, QueueSimulation, fit_cost
from tritonpy_analyzer.findings import Findings, SearchEnded, SearchOptions, SearchView
from tritonpy_analyzer.goals import Goals, Metric
from tritonpy_analyzer.measuring import LoadWindow, Measurer
from tritonpy_analyzer.proposals import Proposals
from tritonpy_analyzer.racing import (
    ALPHA,
    Race,
    RateEstimate,
    violates,
)
from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES, Candidate, Space
from tritonpy_load_generator.options import LoadLevel
from tritonpy_metrics.confidence_bounds import mean_radius

FIRST_RACE, LATER_RACE = 7, 6
_SAMPLED = 3000
_EXCLUDED = 0.6
"""Candidates that are predicted below this part of the best one are not predicted again."""
_MEASURED_RACES = 0.75
"""The part of the time in which races may start; the rest confirms the result."""
_LEAST_RATE = 0.5
_LEAST_WINDOW_S = 1.0
_STALE_RACES = 2
_LEAST_ROUNDS = 3
_APPROACHES = 4
_EVENTS = 3
"""Requests beyond the limit that a window should see at the limit, to tell where it is."""
CURVE = (0.5, 0.7, 0.85, 0.95, 1.05, 1.15)


class Search:
    """Searches a space; `run` fills `findings` until the time is over.

    All decisions depend on the measured windows and their times only, so that a search can be
    repeated from its record.
    """

    def __init__(
        self,
        space: Space,
        goals: Goals,
        measurer: Measurer,
        options: SearchOptions,
        view: SearchView,
        interrupted: asyncio.Event,
    ) -> None:
        self.space = space
        self._goals = goals
        self._measurer = measurer
        self._options = options
        self._view = view
        self._interrupted = interrupted
        self.findings = Findings()
        self._executions: list[Execution] = []
        self._overhead_s = 0.0
        self._memory: dict[int, tuple[int, int]] = {}
        self._simulation: QueueSimulation | None = None
        self._calibration = 1.0
        self._rates: dict[Candidate, float] = {}
        self._window_number = 0

    async def run(self) -> None:
        """Search. Raises StartupError if the server or the client fails."""
        try:
            self._view.phase("measuring the present configuration")
            await self._measure_present()
            self._view.phase("measuring the cost of batches and instances")
            await self._measure_cost()
            await self._race_all()
            self._view.phase("confirming the result")
            await self._confirm()
        except SearchEnded:
            return
        finally:
            self._note_front()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return self._measurer.elapsed_s

    def load_text(self) -> str:
        """Return the kind of load for a reader."""
        level = self._options.level
        if self._finds_rate:
            return "the highest rate of Poisson arrivals within the latency limit"
        if level is None:
            return "closed loop that saturates the model"
        kind = "Poisson arrivals per second" if level.open_loop else "requests in flight"
        return f"{level.value:g} {kind}"

    @property
    def _left_s(self) -> float:
        return self._options.seconds - self._measurer.elapsed_s

    async def _measure(self, candidate: Candidate, value: float, seconds: float) -> LoadWindow:
        self._window_number += 1
        level = self._options.level or LoadLevel(value, "poisson" if self._finds_rate else "closed")
        level = msgspec.structs.replace(
            level, value=value, seed=self._options.seed * 10_000 + self._window_number
        )
        window = await self._take(candidate, level, seconds)
        if not window.dropped and not window.invalid:
            self.findings.windows.setdefault(candidate, []).append(window)
        return window

    async def _take(self, candidate: Candidate, level: LoadLevel, seconds: float) -> LoadWindow:
        if self._interrupted.is_set() or self._left_s <= 0.3:
            raise SearchEnded
        window = await self._measurer.measure(
            candidate, level, max(min(seconds, self._left_s - 0.2), 0.2)
        )
        found = self.findings
        found.count += 1
        if window.dropped:
            found.dropped.append(window)
            if found.count >= 8 and len(found.dropped) > found.count / 2:
                found.too_noisy = True
                raise SearchEnded
        else:
            self._executions += window.executions
        best = found.leader.describe() if found.leader is not None else ""
        self._view.progress(self._measurer.elapsed_s, best)
        return window

    @property
    def _finds_rate(self) -> bool:
        return self._goals.finds_rate and self._options.level is None

    # The present configuration

    async def _measure_present(self) -> None:
        present = self.space.present
        self.findings.leader = present
        self.findings.merits[present] = 0.0
        window = await self._take(present, LoadLevel(self._saturation(present)), 1.0)
        if window.invalid:
            self.findings.violated = window.invalid
            raise SearchEnded
        if window.failed and not window.succeeded:
            self.findings.violated = f"requests fail: {window.error}"
            raise SearchEnded
        self._overhead_s = max(window.latency.mean / 1e9 * 0.02, 2e-4)
        if self._finds_rate:
            self._rates[present] = max(0.6 * window.rate, 1.0)
            await self._converge(present)

    def _saturation(self, candidate: Candidate) -> int:
        """Return a number of requests in flight that keeps a candidate busy."""
        model = self.space.models[0] if self.space.models else ""
        values = candidate.of(model)
        batch = int(values.get(BATCH, 1)) if values.get(BATCHING) else 1
        return min(2 * batch * int(values.get(INSTANCES, 1)), 64)

    async def _converge(self, candidate: Candidate) -> bool:
        """Find the rate at which a candidate just keeps its limits; False if it has none."""
        estimate = RateEstimate(self._rates[candidate], self._goals.latency_limits)
        for _ in range(12):
            if estimate.rate < _LEAST_RATE:
                self.findings.out[candidate] = self._infeasible()
                return False
            window = await self._measure(candidate, estimate.rate, self._window_s(estimate.rate))
            if window.invalid:
                return False
            if window.dropped:
                continue
            found = estimate.add(window)
            self._rates[candidate] = estimate.rate
            if found is not None:
                self.findings.estimates.setdefault(candidate, []).append(found)
                if len(estimate.estimates) >= 2:
                    break
        return True

    def _infeasible(self) -> str:
        return f"violates {', '.join(map(str, self._goals.latency_limits))} at any rate"

    def _window_s(self, rate: float) -> float:
        """Return the length of a window that sees enough requests beyond the limit."""
        if not self._finds_rate:
            return 1.0
        share = 1 - max(each.metric.percentile or 0 for each in self._goals.latency_limits) / 100
        longest = max(min(self._options.seconds / 60, 5.0), _LEAST_WINDOW_S)
        return min(max(_EVENTS / max(share, 1e-3) / rate, _LEAST_WINDOW_S), longest)

    # The cost of executions

    async def _measure_cost(self) -> None:
        """Measure batch sizes and numbers of instances, and predict all candidates."""
        if len(self.space.models) != 1:
            return
        model = self.space.models[0]
        until_s = self._measurer.elapsed_s + min(20.0, 0.15 * self._options.seconds)
        keys = dict(self.space.dimensions)
        explored = self.space.present
        for name, value in ((BATCHING, True), (DELAY, 0), (INSTANCES, 1)):
            if (model, name) in keys:
                explored = explored.with_setting(model, name, value)
        batches = keys.get((model, BATCH), (1,))
        for batch in reversed(batches):
            if (model, BATCH) in keys:
                explored = explored.with_setting(model, BATCH, batch)
            window = await self._take(explored, LoadLevel(1), 0.6)
            if not window.invalid:
                break
            self.findings.out[explored] = f"refused: {window.invalid}"
        self._note_memory(1, window)
        busy_s = sum(each.seconds for each in window.executions)
        rows = sum(each.batch * each.count for each in window.executions)
        if rows and window.latency.total:
            self._overhead_s = max(window.latency.mean / 1e9 - busy_s / rows, 2e-4)
        largest = int(explored.of(model).get(BATCH, 1))
        for in_flight in (4, 16, 64, 2 * largest):
            if self._measurer.elapsed_s < until_s and in_flight <= 2 * largest:
                await self._take(explored, LoadLevel(in_flight), 0.8)
        counts = keys.get((model, INSTANCES), (1,))
        for count in (2, self._options.cores, int(counts[-1])):
            if count in counts and count > 1 and self._measurer.elapsed_s < until_s:
                several = explored.with_setting(model, INSTANCES, count)
                window = await self._take(several, LoadLevel(min(8 * count, 64)), 0.8)
                self._note_memory(count, window)
        self._predict_all()

    def _note_memory(self, instances: int, window: LoadWindow) -> None:
        if not window.invalid:
            self._memory[instances] = (window.memory_cpu, window.memory_gpu)

    def _predict_all(self) -> None:
        """Fit the cost to all executions so far, and predict all candidates from it."""
        found = self.findings
        cost = found.cost = fit_cost(self._executions) if len(self.space.models) == 1 else None
        if cost is None:
            return
        self._simulation = QueueSimulation(cost, self._overhead_s, self._options.seed)
        for candidate in self._worth_predicting():
            found.predicted[candidate] = self._predict(candidate)
            reason = self._predicted_violation(candidate)
            if reason:
                found.pruned[candidate] = reason
        present = self.space.present
        rate = self._rates.get(present)
        if rate and found.predicted.get(present):
            self._calibration = rate / found.predicted[present]

    def _worth_predicting(self) -> list[Candidate]:
        """Return all candidates, or those that an earlier prediction does not exclude."""
        predicted = self.findings.predicted
        if not predicted:
            return self.space.candidates(_SAMPLED, self._options.seed)
        best = max(predicted.values())
        return [each for each, value in predicted.items() if value > _EXCLUDED * best]

    def _predict(self, candidate: Candidate) -> float:
        """Return the predicted figure of merit, which is better if higher; 0 if unknown.

        In a closed loop, the latency is the number of requests in flight over the throughput.
        """
        cost, simulation = self.findings.cost, self._simulation
        if cost is None or simulation is None or len(self.space.models) != 1:
            return 0.0
        values = candidate.of(self.space.models[0])
        if self._finds_rate:
            limit = min(self._goals.latency_limits, key=lambda each: each.limit)
            return simulation.rate(values, limit.limit, 1 - (limit.metric.percentile or 0) / 100)
        level, objective = self._options.level, self._goals.objectives[0]
        if level is not None and level.open_loop:
            percent = objective.metric.percentile or 50.0
            if objective.metric.kind != "time":
                return min(cost.capacity(values), level.value)
            return 1 / simulation.latency(values, level.value, 1 - percent / 100)
        in_flight = self._saturation(candidate) if level is None else level.value
        instances = int(values.get(INSTANCES, 1))
        batch = int(values.get(BATCH, 1)) if values.get(BATCHING) else 1
        used = max(min(batch, math.ceil(in_flight / instances)), 1)
        active = min(instances, math.ceil(in_flight / used))
        return active * used / (cost.seconds(used, active) + self._overhead_s)

    def _predicted_violation(self, candidate: Candidate) -> str:
        """Return why a candidate cannot keep a memory limit, or ""."""
        counts = sorted(self._memory)
        if len(counts) < 2:
            return ""
        instances = int(candidate.of(self.space.models[0]).get(INSTANCES, 1))
        for at, metric in enumerate((Metric.MEMORY_CPU, Metric.MEMORY_GPU)):
            first, last = self._memory[counts[0]][at], self._memory[counts[-1]][at]
            each = (last - first) / (counts[-1] - counts[0])
            predicted = first + each * (instances - counts[0])
            for constraint in self._goals.constraints:
                if constraint.metric is metric and constraint.violation(predicted) > 0:
                    return f"predicted to violate {constraint}"
        return ""

    # Races

    async def _race_all(self) -> None:
        found = self.findings
        present = self.space.present
        space = self.space
        proposals = Proposals(space, len(self._goals.objectives), self._options.seed)
        focuses = self._focuses()
        candidates = self._first_candidates(focuses[0])
        if present in found.out:
            await self._find_feasible(candidates)
        number = 0
        while focuses and self._may_race():
            if not candidates:
                focuses.pop(0)
                candidates = self._next_candidates(proposals, focuses[0]) if focuses else []
                continue
            number += 1
            where = f" of {', '.join(focuses[0])}" if len(space.models) > 1 else ""
            self._view.phase(f"race {number}: {len(candidates)} candidates{where}")
            leader = found.leader or present
            race = await self._race([leader, *candidates], self._race_seconds())
            for candidate, entry in race.entries.items():
                if candidate in found.merits:
                    proposals.add(
                        candidate,
                        found.front.get(candidate, (found.merits[candidate],)),
                        1.0 if entry.out.startswith("violates") else 0.0,
                    )
            self._predict_all()
            if found.leader == leader:
                focuses.pop(0)
            survivors = [each.candidate for each in race.alive if each.candidate != found.leader]
            candidates = self._next_candidates(proposals, focuses[0]) if focuses else []
            candidates = [*survivors, *candidates][:LATER_RACE]

    def _focuses(self) -> list[tuple[str, ...]]:
        """Return the models whose settings are searched, one group after the other.

        Of several models, the one in which requests spend the most time comes first, and all
        together come last. A group ends with a race that finds nothing better.
        """
        models = self.space.models
        if len(models) == 1:
            return [models] * _STALE_RACES
        spent: dict[str, float] = {}
        for window in self.findings.windows.get(self.space.present, []):
            for name, seconds in window.shares.items():
                spent[name] = spent.get(name, 0.0) + seconds
        ranked = sorted(models, key=lambda each: -spent.get(each, 0.0))
        return [*((each,) for each in ranked), models]

    async def _find_feasible(self, candidates: list[Candidate]) -> None:
        """Find a reference among candidates, since the present configuration keeps no limit."""
        while candidates:
            candidate = candidates.pop(0)
            self._rates[candidate] = max(self._predict(candidate) * 0.7, 2 * _LEAST_RATE)
            if await self._converge(candidate):
                self.findings.leader = candidate
                self.findings.merits[candidate] = 0.0
                return

    def _may_race(self) -> bool:
        trials = self._options.max_trials
        if trials and len(self.findings.merits) + len(self.findings.out) >= trials:
            return False
        return self._measurer.elapsed_s < _MEASURED_RACES * self._options.seconds

    def _race_seconds(self) -> float:
        end_s = _MEASURED_RACES * self._options.seconds + 2
        return (end_s - self._measurer.elapsed_s) * 0.6

    def _first_candidates(self, focus: Sequence[str]) -> list[Candidate]:
        """Return the present configuration's rivals: predicted ones, or its neighbors."""
        found = self.findings
        ranked = sorted(
            (each for each in found.predicted if each not in found.pruned),
            key=lambda each: -found.predicted[each],
        )
        chosen: list[Candidate] = []
        kinds: set[tuple[object, ...]] = set()
        for candidate in ranked:
            values = candidate.of(self.space.models[0])
            kind = (values.get(BATCH), values.get(INSTANCES), values.get(BATCHING))
            if candidate != self.space.present and kind not in kinds:
                kinds.add(kind)
                chosen.append(candidate)
            if len(chosen) == FIRST_RACE - 1:
                break
        if not chosen:
            chosen = self._adjacent(self.space.present, focus)[: FIRST_RACE - 1]
        return self._within_trials(chosen)

    def _within_trials(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        if not self._options.max_trials:
            return list(candidates)
        left = self._options.max_trials - len(self.findings.merits) - len(self.findings.out)
        return list(candidates[: max(left, 0)])

    def _adjacent(self, candidate: Candidate, focus: Sequence[str]) -> list[Candidate]:
        """Return the neighbors that differ in a setting of the models in focus."""
        before = {(model, name): value for model, name, value in candidate.settings}
        return [
            each
            for each in self.space.adjacent(candidate)
            if any(
                before[model, name] != value and model in focus
                for model, name, value in each.settings
            )
        ]

    def _next_candidates(self, proposals: Proposals, focus: Sequence[str]) -> list[Candidate]:
        """Return neighbors of the leader, and what the sampler proposes, if they look good."""
        found = self.findings
        leader = found.leader or self.space.present
        known = [*found.merits, *found.out, *found.pruned]

        def promising(candidate: Candidate) -> bool:
            if candidate in known:
                return False
            expected = found.predicted.get(candidate) or self._predict(candidate)
            return not expected or not best or expected > 0.85 * best

        best = found.predicted.get(leader) or self._predict(leader)
        near = sorted(
            filter(promising, self._adjacent(leader, focus)),
            key=lambda each: -found.predicted.get(each, 0.0),
        )[: LATER_RACE // 2]
        rest = [each for each in found.predicted if each not in known and each not in near]
        near += sorted(rest, key=lambda each: -found.predicted[each])[:1]
        sampled = (
            [each for each in proposals.ask(LATER_RACE, [*known, *near]) if promising(each)]
            if len(focus) == len(self.space.models)
            else []
        )
        return self._within_trials([*near, *sampled[: LATER_RACE - len(near)]])

    async def _race(self, candidates: Sequence[Candidate], seconds: float) -> Race:
        """Race candidates until it is decided or the time is over; the first is the reference."""
        found = self.findings
        until_s = self._measurer.elapsed_s + seconds
        race = Race(candidates, self._goals, self._start_rate, self._predict)
        try:
            await self._approach_limits(race, self._measurer.elapsed_s + seconds / 2)
            while self._measurer.elapsed_s < until_s and not self._is_over(race):
                for candidate in race.order():
                    if race.entries[candidate].out:
                        continue
                    rate = race.entries[candidate].rate
                    value = self._value(candidate) if rate is None else rate.rate
                    if rate is not None and rate.rate < _LEAST_RATE:
                        race.entries[candidate].out = self._infeasible()
                        continue
                    window = await self._measure(candidate, value, self._window_s(value))
                    race.record(candidate, window)
                    if self._measurer.elapsed_s > until_s + 5:
                        break
                before = {each.candidate for each in race.alive}
                race.settle()
                for candidate in before - {each.candidate for each in race.alive}:
                    self._view.verdict(f"{candidate.describe()}: {race.entries[candidate].out}")
        finally:
            self._note_race(race)
        leader = race.leader.candidate
        if leader != found.leader and race.estimates()[leader].cautious > 0:
            found.leader = leader
            self._view.verdict(f"leads: {leader.describe()}")
        return race

    async def _approach_limits(self, race: Race, until_s: float) -> None:
        """Find about the rate of candidates that were not measured before, without comparing.

        Candidates for which there is no time leave the race.
        """
        for candidate, entry in list(race.entries.items()):
            if self._measurer.elapsed_s > until_s and candidate not in self._rates:
                race.remove(candidate)
                continue
            for _ in range(_APPROACHES):
                if entry.rate is None or entry.rate.settled or entry.out:
                    break
                if candidate in self._rates:
                    entry.rate.settled = True
                    break
                window = await self._measure(candidate, entry.rate.rate, _LEAST_WINDOW_S)
                if window.invalid:
                    entry.out = f"refused: {window.invalid}"
                elif not window.dropped:
                    entry.rate.add(window)

    def _is_over(self, race: Race) -> bool:
        """Return whether a race needs no further round.

        A reference that was overtaken compares badly, since it runs at another rate: the survivors
        continue in a race with the leader as the reference.
        """
        if race.round < _LEAST_ROUNDS:
            return False
        return race.decided or race.overtaken

    def _value(self, candidate: Candidate) -> float:
        """Return the load of a window without a latency limit to search for."""
        if self._options.level is not None:
            return self._options.level.value
        return float(self._saturation(candidate))

    def _start_rate(self, candidate: Candidate) -> float:
        known = self._rates.get(candidate)
        if known is not None:
            return known
        predicted = self._predict(candidate) * self._calibration
        leader = self._rates.get(self.findings.leader or self.space.present, 1.0)
        return max(min(predicted or leader, 16 * leader), leader / 4, 1.0)

    def _note_race(self, race: Race) -> None:
        found = self.findings
        base = found.merits.get(race.reference, 0.0)
        estimates = race.estimates()
        for candidate, entry in race.entries.items():
            if entry.rate is not None and (entry.windows or entry.rate.settled):
                self._rates[candidate] = max(entry.rate.rate, _LEAST_RATE)
                found.estimates.setdefault(candidate, []).extend(entry.rate.estimates)
            if entry.out:
                found.out[candidate] = entry.out
            if candidate == race.reference or not entry.relative:
                continue
            objectives = len(self._goals.objectives)
            found.merits[candidate] = base + estimates[candidate].gain
            if objectives > 1:
                reference = found.front.get(race.reference, (0.0,) * objectives)
                found.front[candidate] = tuple(
                    reference[at] + race.compare(candidate, race.reference, at).mean
                    for at in range(objectives)
                )
        if len(self._goals.objectives) > 1:
            found.front.setdefault(self.space.present, (0.0,) * len(self._goals.objectives))

    def _note_front(self) -> None:
        """Keep the candidates that no other one beats in every objective."""
        front = self.findings.front
        self.findings.front = {
            candidate: merits
            for candidate, merits in front.items()
            if not any(
                all(theirs >= ours for theirs, ours in zip(other, merits, strict=True))
                and other != merits
                for other in front.values()
            )
        }

    # The result

    async def _confirm(self) -> None:
        """Compare the leader with the present configuration, verify its rate, draw the curves."""
        found, present = self.findings, self.space.present
        leader = found.leader or present
        if leader != present and present not in found.out:
            seconds = max(0.7 * self._left_s, 4.0)
            race = await self._race([present, leader], seconds)
            comparison = race.compare(leader, present)
            found.gain = comparison
            if comparison.mean <= 0 and comparison.verdict != "open":
                found.leader = leader = present
            else:
                found.leader = leader
        if not self._finds_rate:
            return
        if leader not in self._rates or leader in found.out:
            return
        await self._verify(leader)
        for candidate in dict.fromkeys([leader, present, *self._runners_up()]):
            await self._curve(candidate)

    def _runners_up(self) -> list[Candidate]:
        found = self.findings
        return [
            each
            for each in sorted(found.merits, key=lambda each: -found.merits[each])
            if each in self._rates and each != found.leader
        ][:2]

    async def _verify(self, leader: Candidate) -> None:
        """Check the leader's limits for a long time, and lower the rate until they hold."""
        found = self.findings
        rate = estimate_interval(found.estimates.get(leader, []), self._rates[leader])[1]
        rate = max(rate, 0.85 * self._rates[leader])
        needed = max(
            20 / (1 - (each.metric.percentile or 0) / 100) for each in self._goals.latency_limits
        )
        until_s = self._measurer.elapsed_s + 0.6 * self._left_s
        for _ in range(5):
            windows: list[LoadWindow] = []
            count = 0
            while count < needed and self._measurer.elapsed_s < until_s:
                window = await self._measure(leader, rate, min(2 * self._window_s(rate), 4.0))
                if not window.dropped and not window.invalid:
                    windows.append(window)
                    count += window.latency.total
                    if window.overloaded:
                        break
            if windows and self._keeps_limits(windows):
                found.verified = (rate, windows)
                return
            if self._measurer.elapsed_s >= until_s:
                return
            rate *= 0.93

    def _keeps_limits(self, windows: Sequence[LoadWindow]) -> bool:
        if any(each.overloaded for each in windows):
            return False
        for limit in self._goals.latency_limits:
            allowed = 1 - (limit.metric.percentile or 0) / 100
            above = sum(each.latency.count_above(limit.limit * 1e9) for each in windows)
            count = sum(each.latency.total for each in windows)
            if above > allowed * count:
                return False
        return True

    async def _curve(self, candidate: Candidate) -> None:
        for share in CURVE:
            rate = share * self._rates[candidate]
            window = await self._measure(candidate, rate, self._window_s(rate))
            if not window.dropped and not window.invalid:
                self.findings.curves.setdefault(candidate, []).append(window)

    def violation(self) -> str:
        """Return the constraint that the best candidate violates, or ""."""
        found = self.findings
        leader = found.leader or self.space.present
        if found.violated:
            return found.violated
        if leader in found.out and found.out[leader].startswith(("violates", "requests fail")):
            return found.out[leader]
        for constraint in self._goals.constraints:
            if constraint.metric is Metric.RATE and self._finds_rate:
                rate = self._rates.get(leader, 0.0)
                if constraint.violation(rate) > 0:
                    return f"{constraint}: the highest rate is {rate:.1f}/s"
            elif not (self._finds_rate and constraint in self._goals.latency_limits) and violates(
                found.windows.get(leader, []), constraint, ALPHA
            ):
                return f"violates {constraint}"
        return ""

    def rate(self, candidate: Candidate) -> tuple[float, float, float] | None:
        """Return the rate of a candidate with its interval, or None if it is not known."""
        if self._finds_rate:
            estimates = self.findings.estimates.get(candidate, [])
            if not estimates:  # no window was near the limit
                return None
            return estimate_interval(estimates, self._rates[candidate])
        rates = [
            math.log(max(each.rate, 1e-9)) for each in self.findings.windows.get(candidate, [])
        ]
        if not rates:
            return None
        return estimate_interval(rates, math.exp(rates[-1]))


def estimate_interval(estimates: Sequence[float], known: float) -> tuple[float, float, float]:
    """Return the mean of logarithms as a rate, with its 95 % interval."""
    if len(estimates) < 2:
        return known, 0.0, math.inf
    mean, radius = sum(estimates) / len(estimates), mean_radius(estimates, ALPHA)
    if radius > 50:
        return math.exp(mean), 0.0, math.inf
    return math.exp(mean), math.exp(mean - radius), math.exp(mean + radius)
