from __future__ import annotations

import pytest

from tritonpy import StartupError
from tritonpy_config.server import InvalidServerConfig, decode_options
from tritonpy_trace_otel.options import OpenTelemetryOptions, attributes, limits

DEFAULTS = {
    "bsp_max_queue_size": 2048,
    "bsp_schedule_delay": 5000,
    "bsp_max_export_batch_size": 512,
}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DEFAULTS:
        monkeypatch.delenv(f"OTEL_{name.upper()}", raising=False)


def decoded(**given: object) -> OpenTelemetryOptions:
    return decode_options(OpenTelemetryOptions, given, "options")


def test_limits_default_to_the_environment_and_then_to_triton_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert limits(decoded()) == DEFAULTS
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "7")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
    assert limits(decoded(bsp_max_queue_size="9")) == {
        **DEFAULTS,
        "bsp_schedule_delay": 7,
        "bsp_max_queue_size": 9,
    }


@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5", "²"])
def test_an_invalid_environment_variable_is_rejected(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", text)
    with pytest.raises(StartupError, match="OTEL_BSP_MAX_QUEUE_SIZE"):
        limits(decoded())


def test_resources_are_pairs() -> None:
    assert attributes(decoded(resource=["a=b=c", "empty="])) == {
        "service.name": "triton-inference-server",
        "a": "b=c",
        "empty": "",
    }
    assert attributes(decoded(resource=["service.name=mine"])) == {"service.name": "mine"}


@pytest.mark.parametrize("pair", ["a", "=b", ""])
def test_an_invalid_pair_is_rejected(pair: str) -> None:
    with pytest.raises(InvalidServerConfig, match="KEY=VALUE"):
        decoded(resource=[pair])
