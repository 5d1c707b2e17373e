from __future__ import annotations

import pytest

from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.names import SERVER_METRICS, check_name, sorted_labels
from tritonpy.errors import AlreadyExists, InvalidArgument


@pytest.mark.parametrize(
    "name", ["requests", "Requests_2", "_hidden", "vllm:latency_s", "things_total", "nv_llm_tokens"]
)
def test_a_valid_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "0things", "two words", "dash-ed", "__internal", "straße", "line\n", "x{y}"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^Invalid metric name$"):
        check_name(name)


@pytest.mark.parametrize("name", ["nv_inference_count", "nv_inference_queue_summary_us", "nv_cache_num_hits_per_model"])
def test_the_servers_own_names_are_refused(name: str) -> None:
    assert name in SERVER_METRICS
    with pytest.raises(AlreadyExists, match=f"Family name already exists: '{name}' is a metric of the server itself"):
        check_name(name)


def test_labels_are_sorted_by_name() -> None:
    assert sorted_labels({"b": "1", "a": "2", "B": ""}, MetricKind.GAUGE) == (("B", ""), ("a", "2"), ("b", "1"))


@pytest.mark.parametrize("name", ["", "0", "__x", "a:b", "a b", "é"])
def test_an_invalid_label_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^Invalid label name$"):
        sorted_labels({name: "x"}, MetricKind.GAUGE)


def test_the_bucket_label_is_reserved_for_histograms() -> None:
    assert sorted_labels({"le": "x"}, MetricKind.COUNTER) == (("le", "x"),)
    with pytest.raises(InvalidArgument, match="Invalid label name"):
        sorted_labels({"le": "x"}, MetricKind.HISTOGRAM)


def test_a_label_value_must_be_text() -> None:
    with pytest.raises(InvalidArgument) as refused:
        sorted_labels({"version": 1}, MetricKind.GAUGE)  # type: ignore[dict-item]
    assert refused.value.message == (
        "Parameter [version] must have a type of TRITONSERVER_PARAMETER_STRING to be added as a label."
    )
