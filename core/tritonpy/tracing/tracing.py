"""The server's tracer: samples requests, applies settings, and sends ended traces to the sink."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from tritonpy.api.trace_settings import TraceChanges, TraceSettings
from tritonpy.api.trace_sink import TraceSink
from tritonpy.api.tracer import Tracer
from tritonpy.tracing.rule import TraceRule
from tritonpy.tracing.settings import TraceRules, level_from_names, level_names
from tritonpy.tracing.trace_thread import TraceThread
from tritonpy.types.trace import Trace, TraceFamily, TraceLevel

log = logging.getLogger("tritonpy.tracing")


class Tracing(Tracer):
    """The tracer of a server. It is thread-safe; `close` waits until all traces are written."""

    def __init__(self, sink: TraceSink, start: TraceSettings) -> None:
        self.headers = sink.headers
        self._sink = sink
        self._start = start
        self._supported_level = TraceLevel.TIMESTAMPS | (TraceLevel.TENSORS if sink.takes_tensors else TraceLevel.OFF)
        self._lock = threading.Lock()
        self._trace_thread = TraceThread()
        # called when `active` may have changed
        self.activity_changed: Callable[[], None] = lambda: None
        missing_setting = sink.missing()
        rule = TraceRule(level_from_names(start.level), start.rate, start.count, start.log_frequency, missing_setting)
        self._rules = TraceRules(rule)
        if rule.level and missing_setting:
            log.warning("nothing is traced: %s", missing_setting)
        self._update_activity()
        self._warn_of_unsupported_levels()

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        caller = self._propagated(headers)
        with self._lock:
            rule = self._rules.find(model_name)
            if not rule.sample(continues=caller is not None):
                return None
        return TraceFamily(rule.level & self._supported_level, rule, caller, self._begun, self._ended).trace()

    def settings(self, model_name: str = "") -> TraceSettings:
        """Return the settings of a model, or of the server."""
        with self._lock:
            rule = self._rules.find(model_name)
            return TraceSettings(
                level_names(rule.level), rule.rate, rule.count, rule.log_frequency, self._start.file, self._start.mode,
                dict(self._start.options),
            )  # fmt: skip

    def change(self, changes: TraceChanges, model_name: str = "") -> None:
        """Apply new settings to the following requests. Raises InvalidArgument."""
        with self._lock:
            before = self._rules.all()
            try:
                self._rules.change(model_name, changes)
            finally:  # an error for one model does not affect the others
                self._update_activity()
                self._warn_of_unsupported_levels()
                for rule in set(before).difference(self._rules.all()):
                    self._trace_thread.send(partial(self._replaced, rule))

    def close(self) -> None:
        """Stop tracing and write the remaining traces."""
        self.active = False
        if self._trace_thread.close():
            self._sink.close()

    def _update_activity(self) -> None:
        # with rate 0, clients' traces are still continued
        self.active = any(
            rule.level and (self._sink.headers or not rule.problem) and not rule.missing_setting
            for rule in self._rules.all()
        )
        self.activity_changed()

    def _warn_of_unsupported_levels(self) -> None:
        if any(rule.level & ~self._supported_level for rule in self._rules.all()):
            log.warning("the trace mode '%s' does not record tensors", self._start.mode)

    def _propagated(self, headers: Mapping[str, str]) -> object:
        if not headers:
            return None
        try:
            return self._sink.propagated(headers)
        except Exception:
            log.exception("the client's trace is not continued")
            return None

    def _begun(self, trace: Trace) -> None:
        try:
            self._sink.begun(trace)
        except Exception:
            log.exception("a trace is lost")

    def _ended(self, family: TraceFamily) -> None:
        self._trace_thread.send(partial(self._take, family))

    def _take(self, family: TraceFamily) -> None:
        rule: TraceRule = family.rule
        rule.taken += 1
        self._sink.take(family)
        if rule.replaced and rule.taken >= rule.chosen:
            self._sink.settled(rule)

    def _replaced(self, rule: TraceRule) -> None:
        rule.replaced = True
        if rule.taken >= rule.chosen:
            self._sink.settled(rule)
