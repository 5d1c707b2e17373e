"""Figures of `tritonpy bench` beside those of other clients, on a model of known times.

    python -m bench.language_model_clients --aiperf FILE --vllm PYTHON --tokenizer FOLDER

A Python model sends its first token 50 ms after a request has arrived and then one each 10 ms. The
clients measure it in turn with the same load: 4 requests in flight, prompts of 20 and responses of
40 tokens. `--aiperf` is the program of NVIDIA's AIPerf, `--vllm` an interpreter with vLLM, whose
`vllm bench serve` is called. Both need a folder with a tokenizer. Printed are the medians over all
rounds, and their ratios to those of tritonpy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from tritonpy_testing import running_server

CONCURRENCY, REQUESTS, ISL, OSL = 4, 40, 20, 40
NAME = "mock"
MODEL = """
import asyncio
import time

import numpy as np
import triton_python_backend_utils as pb_utils

OPTIONAL = (
    ("max_tokens", "TYPE_INT32"), ("min_tokens", "TYPE_INT32"), ("ignore_eos", "TYPE_BOOL"),
    ("temperature", "TYPE_FP32"), ("top_p", "TYPE_FP32"),
)


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "text_input", "data_type": "TYPE_STRING", "dims": [1]})
        for name, kind in OPTIONAL:
            config.add_input({"name": name, "data_type": kind, "dims": [1], "optional": True})
        config.add_output({"name": "text_output", "data_type": "TYPE_STRING", "dims": [1]})
        for name in ("num_input_tokens", "num_output_tokens"):
            config.add_output({"name": name, "data_type": "TYPE_UINT32", "dims": [1]})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config

    async def execute(self, requests):
        await asyncio.gather(*(self.answer(each, each.get_response_sender()) for each in requests))

    async def answer(self, request, sender):
        began = time.monotonic()
        [prompt] = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
        [count] = pb_utils.get_input_tensor_by_name(request, "max_tokens").as_numpy()
        for number in range(count):
            await asyncio.sleep(max(0, began + 0.05 + 0.01 * number - time.monotonic()))
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("text_output", np.array([b" word"], np.object_)),
                pb_utils.Tensor("num_input_tokens", np.array([len(prompt.split())], np.uint32)),
                pb_utils.Tensor("num_output_tokens", np.array([1], np.uint32)),
            ]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
FIGURES = {"ttft": "first token, p50 (ms)", "tpot": "per token, p50 (ms)", "rate": "tokens/s"}
Figures = Mapping[str, float]


def main() -> int:
    """Measure in turn and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--aiperf", help="program aiperf")
    parser.add_argument("--vllm", help="interpreter of an environment with vLLM")
    parser.add_argument("--tokenizer", required=True, help="folder with a tokenizer")
    parser.add_argument("--pairs", type=int, default=5, help="rounds (default: 5)")
    arguments = parser.parse_args()
    clients: dict[str, Callable[[str, Path], Figures]] = {"tritonpy bench": measure_own}
    if arguments.aiperf:
        clients["aiperf"] = lambda url, folder: measure_aiperf(arguments, url, folder)
    if arguments.vllm:
        clients["vllm bench serve"] = lambda url, folder: measure_vllm(arguments, url, folder)
    found: dict[str, list[Figures]] = {name: [] for name in clients}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        version = folder / "models" / NAME / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(MODEL)
        (version.parent / "config.pbtxt").write_text('backend: "python"')
        openai = {"port": 0, "models": {NAME: {"chat_template": TEMPLATE}}}
        config = {
            "repositories": [{"url": str(folder / "models")}],
            "frontends": {"http": False, "grpc": False, "metrics": False, "openai": openai},
        }
        with running_server(config) as server:
            url = f"http://{server.address('openai')}"
            for _ in range(arguments.pairs):
                for client, measure in clients.items():
                    found[client].append(measure(url, folder))
    print_table(found)
    return 0


def measure_own(url: str, folder: Path) -> Figures:
    """Measure with `tritonpy bench`."""
    out = folder / "own.json"
    run(
        [
            sys.executable, "-m", "tritonpy", "bench", NAME, "--endpoint-type=completions",
            "--streaming", f"-u={url}", f"--concurrency-range={CONCURRENCY}", f"--isl={ISL}",
            f"--osl={OSL}", f"--request-count={REQUESTS}", f"--json={out}", "--names=vllm",
        ]
    )  # fmt: skip
    named = json.loads(out.read_text())["levels"][0]["named"]
    return _of_vllm(named)


def measure_aiperf(arguments: argparse.Namespace, url: str, folder: Path) -> Figures:
    """Measure with AIPerf."""
    run(
        [
            arguments.aiperf, "profile", f"--model={NAME}", f"--url={url}",
            "--endpoint-type=completions", "--streaming", f"--concurrency={CONCURRENCY}",
            f"--request-count={REQUESTS}", f"--isl={ISL}", f"--osl={OSL}",
            "--extra-inputs=ignore_eos:true", f"--tokenizer={arguments.tokenizer}", "--ui=none",
            "--use-server-token-count", f"--output-artifact-dir={folder / 'aiperf'}",
        ]
    )  # fmt: skip
    found = json.loads((folder / "aiperf" / "profile_export_aiperf.json").read_text())
    return {
        "ttft": found["time_to_first_token"]["p50"],
        "tpot": found["inter_token_latency"]["p50"],
        "rate": found["output_token_throughput"]["avg"],
    }


def measure_vllm(arguments: argparse.Namespace, url: str, folder: Path) -> Figures:
    """Measure with `vllm bench serve`, called without the command line that needs its metadata."""
    out = folder / "vllm.json"
    program = (
        "import argparse; from vllm.benchmarks.serve import add_cli_args, main; "
        "parser = argparse.ArgumentParser(); add_cli_args(parser); main(parser.parse_args())"
    )
    run(
        [
            arguments.vllm, "-c", program, f"--base-url={url}", f"--model={NAME}",
            "--dataset-name=random", f"--random-input-len={ISL}", f"--random-output-len={OSL}",
            f"--num-prompts={REQUESTS}", f"--max-concurrency={CONCURRENCY}", "--backend=openai",
            "--endpoint=/v1/completions", f"--tokenizer={arguments.tokenizer}", "--ignore-eos",
            "--percentile-metrics=ttft,tpot", "--save-result", f"--result-dir={folder}",
            f"--result-filename={out.name}",
        ]
    )  # fmt: skip
    return _of_vllm(json.loads(out.read_text()))


def _of_vllm(found: Mapping[str, float]) -> Figures:
    return {
        "ttft": found["median_ttft_ms"],
        "tpot": found["median_tpot_ms"],
        "rate": found["output_throughput"],
    }


def run(command: list[str]) -> None:
    """Run a client. Raises RuntimeError with the end of its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")


def print_table(found: Mapping[str, list[Figures]]) -> None:
    """Print the medians of each client, and their ratios to tritonpy's."""
    medians = {
        name: {figure: median(each[figure] for each in every) for figure in FIGURES}
        for name, every in found.items()
    }
    own = medians["tritonpy bench"]
    print(f"| client | {' | '.join(FIGURES.values())} |")
    print("| --- |" + " --- |" * len(FIGURES))
    for name, values in medians.items():
        cells = [f"{values[figure]:.2f} ({values[figure] / own[figure]:.3f})" for figure in FIGURES]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
