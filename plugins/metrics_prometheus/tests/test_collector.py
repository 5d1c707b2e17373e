from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tritonpy import MemoryUsage, Unavailable
from tritonpy.metrics import SERVER_METRICS, Duration
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.exposition import text_format

# Output of Triton 2.51 for a model without a GPU: type and label names by family, in its order.
LABELS = ("model", "version")
TRITON_FAMILIES = {
    "nv_inference_request_success": ("counter", LABELS),
    "nv_inference_request_failure": ("counter", ("model", "reason", "version")),
    "nv_inference_count": ("counter", LABELS),
    "nv_inference_exec_count": ("counter", LABELS),
    "nv_inference_request_duration_us": ("counter", LABELS),
    "nv_inference_queue_duration_us": ("counter", LABELS),
    "nv_inference_compute_input_duration_us": ("counter", LABELS),
    "nv_inference_compute_infer_duration_us": ("counter", LABELS),
    "nv_inference_compute_output_duration_us": ("counter", LABELS),
    "nv_inference_pending_request_count": ("gauge", LABELS),
    "nv_model_load_duration_secs": ("gauge", LABELS),  # since a version later than 2.51
}


def lines(engine, **options):
    text = text_format(EngineCollector(engine, **options).collect()).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_families_are_triton_s_in_name_type_labels_and_order(engine):
    engine.add()
    text = text_format(EngineCollector(engine).collect()).decode()
    families = text_string_to_metric_families(text)
    found = {
        family.name: (family.type, tuple(sorted(family.samples[0].labels))) for family in families
    }
    assert list(found.items()) == list(TRITON_FAMILIES.items())
    names = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names == set(TRITON_FAMILIES)


def test_every_number_is_read_from_the_engine(engine):
    engine.add()
    assert lines(engine) == [
        'nv_inference_request_success{model="addsub",version="1"} 3',
        'nv_inference_request_failure{model="addsub",reason="REJECTED",version="1"} 1',
        'nv_inference_request_failure{model="addsub",reason="CANCELED",version="1"} 0',
        'nv_inference_request_failure{model="addsub",reason="BACKEND",version="1"} 1',
        'nv_inference_request_failure{model="addsub",reason="OTHER",version="1"} 0',
        'nv_inference_count{model="addsub",version="1"} 6',
        'nv_inference_exec_count{model="addsub",version="1"} 2',
        'nv_inference_request_duration_us{model="addsub",version="1"} 66299',
        'nv_inference_queue_duration_us{model="addsub",version="1"} 167',
        'nv_inference_compute_input_duration_us{model="addsub",version="1"} 161',
        'nv_inference_compute_infer_duration_us{model="addsub",version="1"} 65828',
        'nv_inference_compute_output_duration_us{model="addsub",version="1"} 136',
        'nv_inference_pending_request_count{model="addsub",version="1"} 4',
        'nv_model_load_duration_secs{model="addsub",version="1"} 0.25',
    ]


def test_metric_tags_become_labels_with_an_underscore(engine):
    engine.add(tags={"owner": 'te"am'})
    assert r'nv_inference_count{_owner="te\"am",model="addsub",version="1"} 6' in lines(engine)


def test_every_version_has_its_own_samples(engine):
    engine.add()
    engine.add(version="2")
    assert [line for line in lines(engine) if line.startswith("nv_inference_count")] == [
        'nv_inference_count{model="addsub",version="1"} 6',
        'nv_inference_count{model="addsub",version="2"} 6',
    ]


def test_a_model_unloaded_during_a_scrape_is_omitted(engine):
    engine.add()
    engine.add("gone")
    del engine.extras["gone", "1"]
    assert not [line for line in lines(engine) if "gone" in line]


def test_without_models_there_are_no_families(engine):
    assert lines(engine) == []


def test_a_server_that_is_not_ready_has_no_model_families(engine, monkeypatch):
    engine.add()

    def refuse():
        raise Unavailable("Server not ready")

    monkeypatch.setattr(engine, "statistics", refuse)
    assert lines(engine) == []


def test_without_latency_counters_the_other_counters_stay_at_0(engine):
    engine.add()
    found = lines(engine, counter_latencies=False)
    assert 'nv_inference_request_success{model="addsub",version="1"} 0' in found
    assert 'nv_inference_request_failure{model="addsub",reason="BACKEND",version="1"} 0' in found
    assert 'nv_inference_count{model="addsub",version="1"} 0' in found
    assert 'nv_inference_pending_request_count{model="addsub",version="1"} 4' in found
    assert not [line for line in found if "_us{" in line]


def test_a_prometheus_parser_accepts_the_output(engine):
    engine.add(tags={"owner": 'te"am\\ of\nfive'})
    text = text_format(EngineCollector(engine).collect()).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert list(families) == list(TRITON_FAMILIES)
    assert families["nv_inference_count"].samples[0].labels["_owner"] == 'te"am\\ of\nfive'


def test_the_memory_of_a_model_is_exported_by_kind_and_device(engine):
    engine.add(tags={"owner": "me"})
    engine.add("silent")
    engine.numbers[0].memory_usage = [MemoryUsage("CPU", 0, 12), MemoryUsage("GPU", 1, 2**40)]
    assert [line for line in lines(engine) if line.startswith("nv_model_memory_bytes")] == [
        'nv_model_memory_bytes{_owner="me",device="0",kind="CPU",model="addsub",version="1"} 12',
        f'nv_model_memory_bytes{{_owner="me",device="1",kind="GPU",model="addsub",version="1"}} {2**40}',
    ]
    assert "nv_model_memory_bytes" in SERVER_METRICS


CACHE_FAMILIES = [
    "nv_cache_num_hits_per_model",
    "nv_cache_hit_duration_per_model",
    "nv_cache_num_misses_per_model",
    "nv_cache_miss_duration_per_model",
]


def cache_samples(engine, **options):
    return [line for line in lines(engine, **options) if line.startswith("nv_cache")]


def test_a_model_that_uses_the_cache_has_its_counters(engine):
    engine.add("plain")
    engine.add("cached")
    engine.extras["cached", "1"].cached = True
    times = engine.numbers[1].inference_stats
    times.cache_hit, times.cache_miss = Duration(3, 4_999), Duration(2, 7_000)
    values = (3, 4, 2, 7)
    assert cache_samples(engine) == [
        f'{name}{{model="cached",version="1"}} {value}'
        for name, value in zip(CACHE_FAMILIES, values, strict=True)
    ]
    families = [family.name for family in EngineCollector(engine).collect()]
    after = families.index("nv_inference_compute_output_duration_us") + 1
    assert families[after : after + 4] == CACHE_FAMILIES


def test_without_latency_counters_there_are_no_cache_counters_as_in_triton(engine):
    engine.add()
    engine.extras["addsub", "1"].cached = True
    assert cache_samples(engine, counter_latencies=False) == []
