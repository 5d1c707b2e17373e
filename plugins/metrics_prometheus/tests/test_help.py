from __future__ import annotations

from tritonpy.metrics import SummarySnapshot
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.cpu import CpuCollector
from tritonpy_metrics_prometheus.distributions import SUMMARIES
from tritonpy_metrics_prometheus.gpu import FAMILIES as GPU_FAMILIES

from .test_distributions import HISTOGRAM

# HELP lines of Triton's /metrics. Those of GPUs, first responses and load times are from its
# source, because 2.51 without a GPU does not print them. The conformance tests compare the others
# with a running server.
TRITON_HELP = {
    "nv_inference_request_success": "Number of successful inference requests, all batch sizes",
    "nv_inference_request_failure": "Number of failed inference requests, all batch sizes",
    "nv_inference_count": "Number of inferences performed (does not include cached requests)",
    "nv_inference_exec_count": "Number of model executions performed (does not include cached requests)",
    "nv_inference_request_duration_us": "Cumulative inference request duration in microseconds (includes cached requests)",
    "nv_inference_queue_duration_us": "Cumulative inference queuing duration in microseconds (includes cached requests)",
    "nv_inference_compute_input_duration_us": "Cumulative compute input duration in microseconds (does not include cached requests)",
    "nv_inference_compute_infer_duration_us": "Cumulative compute inference duration in microseconds (does not include cached requests)",
    "nv_inference_compute_output_duration_us": (
        "Cumulative inference compute output duration in microseconds (does not include cached requests)"
    ),
    "nv_cache_num_hits_per_model": "Number of cache hits per model",
    "nv_cache_hit_duration_per_model": "Total cache hit duration per model, in microseconds",
    "nv_cache_num_misses_per_model": "Number of cache misses per model",
    "nv_cache_miss_duration_per_model": "Total cache miss (insert+lookup) duration per model, in microseconds",
    "nv_inference_pending_request_count": "Instantaneous number of pending requests awaiting execution per-model.",
    "nv_model_load_duration_secs": "Model load time in seconds",
    "nv_inference_first_response_histogram_ms": "Duration from request to first response in milliseconds",
    "nv_inference_request_summary_us": "Summary of inference request duration in microseconds (includes cached requests)",
    "nv_inference_queue_summary_us": "Summary of inference queuing duration in microseconds (includes cached requests)",
    "nv_inference_compute_input_summary_us": "Cumulative compute input duration in microseconds (does not include cached requests)",
    "nv_inference_compute_infer_summary_us": "Cumulative compute inference duration in microseconds (does not include cached requests)",
    "nv_inference_compute_output_summary_us": (
        "Cumulative inference compute output duration in microseconds (does not include cached requests)"
    ),
    "nv_cache_hit_summary_per_model": "Summary of cache hit counts/durations per model, in microseconds.",
    "nv_cache_miss_summary_per_model": "Summary of cache miss counts/durations per model, in microseconds.",
}
TRITON_CPU_HELP = {
    "nv_cpu_utilization": "CPU utilization rate [0.0 - 1.0]",
    "nv_cpu_memory_total_bytes": "CPU total memory (RAM), in bytes",
    "nv_cpu_memory_used_bytes": "CPU used memory (RAM), in bytes",
}
TRITON_GPU_HELP = {
    "nv_gpu_utilization": "GPU utilization rate [0.0 - 1.0)",
    "nv_gpu_memory_total_bytes": "GPU total memory, in bytes",
    "nv_gpu_memory_used_bytes": "GPU used memory, in bytes",
    "nv_gpu_power_usage": "GPU power usage in watts",
    "nv_gpu_power_limit": "GPU power management limit in watts",
    "nv_energy_consumption": "GPU energy consumption in joules since the Triton Server started",
}


def test_every_family_of_models_has_triton_s_help_and_order(engine):
    engine.add()
    own = engine.extras["addsub", "1"]
    own.cached, own.first_response = True, HISTOGRAM
    own.summaries = dict.fromkeys(SUMMARIES, SummarySnapshot(0, 0, []))
    found = [(family.name, family.documentation) for family in EngineCollector(engine).collect()]
    assert found == list(TRITON_HELP.items())


def test_the_families_of_the_machine_have_triton_s_help(tmp_path):
    (tmp_path / "stat").write_text("cpu 1 2 3 4 5 6 7 8\n")
    (tmp_path / "meminfo").write_text("MemTotal: 2 kB\nMemAvailable: 1 kB\n")
    cpu = CpuCollector(0, lambda: 0, tmp_path)
    assert {family.name: family.documentation for family in cpu.collect()} == TRITON_CPU_HELP
    assert {family.name: family.help for family in GPU_FAMILIES} == TRITON_GPU_HELP
