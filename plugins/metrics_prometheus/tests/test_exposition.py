from __future__ import annotations

from prometheus_client import Metric

from tritonpy_metrics_prometheus.exposition import text_format


def family(kind="counter", text="Help", **samples):
    metric = Metric("nv_name", text, kind)
    for label, value in samples.items():
        metric.add_sample("nv_name", {"label": label} if label != "none" else {}, value)
    return metric


def test_a_counter_keeps_its_name():
    assert text_format([family(a=1)]) == b'# HELP nv_name Help\n# TYPE nv_name counter\nnv_name{label="a"} 1\n'


def test_numbers_are_written_as_they_are():
    assert text_format([family("gauge", none=0.25)]).endswith(b"nv_name 0.25\n")
    assert text_format([family("gauge", none=25276514304)]).endswith(b"nv_name 25276514304\n")


def test_labels_are_sorted_and_escaped():
    metric = Metric("nv_name", "Help", "gauge")
    metric.add_sample("nv_name", {"version": "1", "model": 'a"b\\c\nd'}, 1)
    assert text_format([metric]).endswith(b'nv_name{model="a\\"b\\\\c\\nd",version="1"} 1\n')


def test_help_is_escaped():
    assert text_format([family(text="a\\b\nc")]).startswith(b"# HELP nv_name a\\\\b\\nc\n")
