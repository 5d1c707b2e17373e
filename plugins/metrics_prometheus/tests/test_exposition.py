from __future__ import annotations

import math

import pytest
from prometheus_client import Metric

from tritonpy_metrics_prometheus.exposition import TextMetric, number, text_format


def family(kind="counter", text="Help", **samples):
    metric = Metric("nv_name", text, kind)
    for label, value in samples.items():
        metric.add_sample("nv_name", {"label": label} if label != "none" else {}, value)
    return metric


def test_a_counter_keeps_its_name():
    assert (
        text_format([family(a=1)])
        == b'# HELP nv_name Help\n# TYPE nv_name counter\nnv_name{label="a"} 1\n'
    )


def test_integers_are_written_in_full():
    assert text_format([family("gauge", none=0.25)]).endswith(b"nv_name 0.25\n")
    assert text_format([family("gauge", none=25276514304)]).endswith(b"nv_name 25276514304\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2.0, "2"), (-0.0, "-0"), (0.1 + 0.2, "0.3"), (1e-9, "1e-09"), (1e21, "1e+21"), (123456789.0, "123456789"),
        (12345678901234567.0, "1.234567890123457e+16"), (12345678901234567, "12345678901234567"),
        (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "Nan"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_triton_writes_it(value, written):
    assert number(value) == written


def test_a_bucket_s_bound_is_its_last_label():
    metric = Metric("nv_name", "Help", "histogram")
    metric.add_sample("nv_name_bucket", {"z": "1", "le": "5", "a": "2"}, 1)
    assert text_format([metric]).endswith(b'nv_name_bucket{a="2",z="1",le="5"} 1\n')


def test_a_family_without_description_has_no_help():
    assert text_format([family(text="", none=1)]) == b"# TYPE nv_name counter\nnv_name 1\n"


def test_labels_are_sorted_and_escaped():
    metric = Metric("nv_name", "Help", "gauge")
    metric.add_sample("nv_name", {"version": "1", "model": 'a"b\\c\nd'}, 1)
    assert text_format([metric]).endswith(b'nv_name{model="a\\"b\\\\c\\nd",version="1"} 1\n')


def test_help_is_escaped():
    assert text_format([family(text="a\\b\nc")]).startswith(b"# HELP nv_name a\\\\b\\nc\n")


def test_formatted_lines_are_written_unchanged():
    metric = TextMetric("nv_name", "Help", "gauge", ["nv_name 1\n", "nv_name 2\n"])
    assert text_format([metric, family(none=3)]) == (
        b"# HELP nv_name Help\n# TYPE nv_name gauge\nnv_name 1\nnv_name 2\n# HELP nv_name Help\n# TYPE nv_name counter\nnv_name 3\n"
    )
