from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tritonpy.metrics import SERVER_METRICS, HistogramSnapshot, SummarySnapshot
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.distributions import FIRST_RESPONSE, SUMMARIES, summary_name
from tritonpy_metrics_prometheus.exposition import text_format

MODEL = 'model="addsub",version="1"'
HISTOGRAM = HistogramSnapshot([1.0, 2.5, 10.0], [2, 3, 3], 4, 905)
SUMMARY = SummarySnapshot(3, 600, [(0.5, 200), (0.999, None)])


def text(engine, prefix):
    found = text_format(EngineCollector(engine).collect()).decode().splitlines()
    return [line for line in found if line.startswith(prefix)]


def test_a_histogram_is_printed_as_triton_prints_it(engine):
    engine.add()
    engine.extras["addsub", "1"].first_response = HISTOGRAM
    assert text(engine, FIRST_RESPONSE) == [
        f"{FIRST_RESPONSE}_count{{{MODEL}}} 4",
        f"{FIRST_RESPONSE}_sum{{{MODEL}}} 905",
        f'{FIRST_RESPONSE}_bucket{{{MODEL},le="1"}} 2',
        f'{FIRST_RESPONSE}_bucket{{{MODEL},le="2.5"}} 3',
        f'{FIRST_RESPONSE}_bucket{{{MODEL},le="10"}} 3',
        f'{FIRST_RESPONSE}_bucket{{{MODEL},le="+Inf"}} 4',
    ]
    assert text(engine, "# TYPE nv_inference_first") == [f"# TYPE {FIRST_RESPONSE} histogram"]


def test_a_summary_is_printed_as_triton_prints_it(engine):
    engine.add(tags={"team": "me"})
    engine.extras["addsub", "1"].summaries = {"queue": SUMMARY}
    assert text(engine, "nv_inference_queue_summary_us") == [
        f'nv_inference_queue_summary_us_count{{_team="me",{MODEL}}} 3',
        f'nv_inference_queue_summary_us_sum{{_team="me",{MODEL}}} 600',
        f'nv_inference_queue_summary_us{{_team="me",{MODEL},quantile="0.5"}} 200',
        f'nv_inference_queue_summary_us{{_team="me",{MODEL},quantile="0.999"}} Nan',
    ]
    assert text(engine, "# TYPE nv_inference_queue_summary") == [
        "# TYPE nv_inference_queue_summary_us summary"
    ]


def test_a_model_without_distributions_has_no_samples(engine):
    engine.add()
    engine.add(version="2")
    engine.extras["addsub", "2"].first_response = HISTOGRAM
    engine.extras["addsub", "2"].summaries = dict.fromkeys(SUMMARIES, SUMMARY)
    families = {family.name: family for family in EngineCollector(engine).collect()}
    for name in (FIRST_RESPONSE, *map(summary_name, SUMMARIES)):
        assert {sample.labels["version"] for sample in families[name].samples} == {"2"}


def test_distributions_are_independent_of_the_latency_counters(engine):
    engine.add()
    engine.extras["addsub", "1"].first_response = HISTOGRAM
    families = {
        family.name: family for family in EngineCollector(engine, counter_latencies=False).collect()
    }
    assert families[FIRST_RESPONSE].samples[0].value == 4


def test_a_prometheus_parser_accepts_the_output(engine):
    engine.add()
    engine.extras["addsub", "1"].first_response = HISTOGRAM
    engine.extras["addsub", "1"].summaries = {"request": SUMMARY}
    found = text_format(EngineCollector(engine).collect()).decode()
    families = {family.name: family.type for family in text_string_to_metric_families(found)}
    assert (families[FIRST_RESPONSE], families["nv_inference_request_summary_us"]) == (
        "histogram",
        "summary",
    )


def test_models_cannot_use_these_family_names():
    assert {FIRST_RESPONSE, *map(summary_name, SUMMARIES)} <= SERVER_METRICS
