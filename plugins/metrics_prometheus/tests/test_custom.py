from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tritonpy.metrics import SERVER_METRICS, MetricKind, ModelMetrics
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.custom import CustomCollector
from tritonpy_metrics_prometheus.exposition import text_format

# Output of Triton 2.51 for a Python model that creates the metrics of the first test, in the
# model's order.
TRITON = """\
# HELP my_requests Number of "requests"
# TYPE my_requests counter
my_requests{version="1",zed="a\\"b\\\\c\\nd\te"} 2.5
# TYPE my_things_total counter
my_things_total{x="é"} 1.234567890123457e+16
# HELP my_special A gauge
# TYPE my_special gauge
my_special{i="0"} +Inf
my_special{i="1"} -Inf
my_special{i="2"} Nan
my_special{i="3"} -0
my_special 0.3
# HELP my_hist A histogram
# TYPE my_hist histogram
my_hist_count{k="v",z="1"} 5
my_hist_sum{k="v",z="1"} 1000000101.65
my_hist_bucket{k="v",z="1",le="0.1"} 2
my_hist_bucket{k="v",z="1",le="1"} 2
my_hist_bucket{k="v",z="1",le="2.5"} 3
my_hist_bucket{k="v",z="1",le="5"} 3
my_hist_bucket{k="v",z="1",le="10"} 3
my_hist_bucket{k="v",z="1",le="+Inf"} 5
"""


@pytest.fixture
def model(engine):
    return ModelMetrics(engine.metrics)


def text(engine):
    return text_format(CustomCollector(engine).collect()).decode()


def test_every_kind_is_printed_as_triton_prints_it(engine, model):
    labels = {"zed": 'a"b\\c\nd\te', "version": "1"}
    model.family("my_requests", 'Number of "requests"', MetricKind.COUNTER).metric(
        labels
    ).increment(2.5)
    model.family("my_things_total", "", MetricKind.COUNTER).metric({"x": "é"}).increment(
        12345678901234567
    )
    special = model.family("my_special", "A gauge", MetricKind.GAUGE)
    for number, value in enumerate((math.inf, -math.inf, math.nan, -0.0)):
        special.metric({"i": str(number)}).set(value)
    special.metric().set(0.1 + 0.2)
    sizes = model.family("my_hist", "A histogram", MetricKind.HISTOGRAM)
    histogram = sizes.metric({"z": "1", "k": "v"}, [0.1, 1.0, 2.5, 5, 10])
    for value in (0.05, 0.1, 1.5, 100, 1e9):
        histogram.observe(value)
    assert text(engine) == TRITON


def test_a_prometheus_parser_accepts_the_output(engine, model):
    model.family("sizes", "By\nsize", MetricKind.HISTOGRAM).metric({"k": "v"}, [0.5]).observe(0.5)
    [family] = text_string_to_metric_families(text(engine))
    assert (family.name, family.type, family.documentation) == ("sizes", "histogram", "By\nsize")
    assert {sample.name: sample.value for sample in family.samples} == {
        "sizes_count": 1,
        "sizes_sum": 0.5,
        "sizes_bucket": 1,
    }


def test_without_custom_metrics_nothing_is_printed(engine, model):
    model.family("empty", "has no metric", MetricKind.GAUGE)
    assert text(engine) == ""


def test_models_cannot_use_the_server_s_family_names(engine):
    engine.add()
    assert {family.name for family in EngineCollector(engine).collect()} <= SERVER_METRICS
