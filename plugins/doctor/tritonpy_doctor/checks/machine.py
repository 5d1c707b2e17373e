"""Checks of processor, memory, limits, disk, kernel, clock and GPUs."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tritonpy.plugins import install_command, make_plugin_manager
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_checks.machine import read_kernel_file, size_text
from tritonpy_config.processors import CGROUP, available_processors, processor_quota

SYSTEM = Path("/sys")
PROCESSES = Path("/proc")
DEVICES = Path("/dev")
SHARED = Path("/dev/shm")  # noqa: S108 - only measured
GIB = 2**30
_FEW_FILES, _SMALL_SHARED, _LITTLE_DISK, _LITTLE_MEMORY = 4096, 256 * 2**20, 2 * GIB, GIB
_BACKLOG = 1024
_RELEASE_YEAR = 2025


class Processor(DoctorCheck):
    """Cores, quota, load and vector instructions."""

    title = "Processor"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield cores and what limits them."""
        cores = len(os.sched_getaffinity(0))
        total = os.cpu_count() or cores
        of = f" of {total}" if total != cores else ""
        yield CheckResult(CheckStatus.OK, f"{cores}{of} cores may be used")
        share = processor_quota(CGROUP)
        if share is not None and share < cores:
            threads = available_processors(CGROUP)
            yield CheckResult(
                CheckStatus.WARN,
                f"the container may use {share:.2g} cores of {cores}: threads beyond it are paused",
                f"Models get {threads} threads by default. Raise the limit if they need more.",
            )
        load = os.getloadavg()[0]
        if load > 2 * cores:
            yield CheckResult(
                CheckStatus.WARN,
                f"the load of the machine is {load:.1f} on {cores} cores",
                "Stop other work before you measure or serve.",
            )
        flags = read_kernel_file(PROCESSES / "cpuinfo")
        if "flags" in flags and "avx2" not in flags:
            yield CheckResult(
                CheckStatus.WARN,
                "the processor has no AVX2: frameworks are several times slower, or do not start",
                "Use another machine type.",
            )
        governor = read_kernel_file(SYSTEM / "devices/system/cpu/cpu0/cpufreq/scaling_governor")
        if governor == "powersave":
            yield CheckResult(
                CheckStatus.WARN,
                "the frequency governor is 'powersave': latencies vary",
                "cpupower frequency-set -g performance",
            )
        nodes = list((SYSTEM / "devices/system/node").glob("node[0-9]*"))
        if len(nodes) > 1:
            yield CheckResult(
                CheckStatus.OK,
                f"{len(nodes)} NUMA nodes",
                "host_policies in server.yaml bind instances to a node",
            )


class MainMemory(DoctorCheck):
    """Main memory, the limit of the container, and the budget of the configuration."""

    title = "Memory"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield free memory and limits."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = read_kernel_file(CGROUP / "memory.max")
        usable = min(total, int(limit)) if limit.isdigit() else total
        used = read_kernel_file(CGROUP / "memory.current")
        free = _available()
        if limit.isdigit() and used.isdigit():
            free = min(free, usable - int(used))
        text = f"{size_text(free)} of {size_text(usable)} are free"
        if free < _LITTLE_MEMORY:
            yield CheckResult(
                CheckStatus.WARN, text, "Stop other programs, or raise the container's limit."
            )
        else:
            yield CheckResult(CheckStatus.OK, text)
        budget = getattr(context.config.memory, "budget", 0)
        if isinstance(budget, int) and budget > usable:
            yield CheckResult(
                CheckStatus.FAIL,
                f"memory.budget is {size_text(budget)}, the machine has {size_text(usable)}",
                "Lower memory.budget in server.yaml.",
            )
        pages = read_kernel_file(SYSTEM / "kernel/mm/transparent_hugepage/enabled")
        if "[always]" in pages:
            yield CheckResult(
                CheckStatus.OK,
                "transparent huge pages are always on",
                "'madvise' saves memory with many worker processes",
            )


def _available() -> int:
    for line in read_kernel_file(PROCESSES / "meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return 0


class SharedMemoryFolder(DoctorCheck):
    """Shared memory that clients may register."""

    title = "Shared memory"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield size and rights of /dev/shm; it matters only for regions of clients."""
        needed = context.config.allow_client_shm
        if not SHARED.is_dir():
            status = CheckStatus.FAIL if needed else CheckStatus.OK
            yield CheckResult(
                status, f"{SHARED} does not exist", "Mount a tmpfs there for shared memory."
            )
            return
        space = shutil.disk_usage(SHARED)
        text = f"{SHARED} has {size_text(space.free)} of {size_text(space.total)} free"
        if needed and not os.access(SHARED, os.W_OK):
            yield CheckResult(CheckStatus.FAIL, f"{SHARED} is not writable", f"chmod 1777 {SHARED}")
        elif needed and space.total < _SMALL_SHARED:
            yield CheckResult(
                CheckStatus.WARN,
                f"{text}: regions of clients may not fit",
                "Docker: --shm-size=1g. Kubernetes: a volume emptyDir with medium: Memory.",
            )
        else:
            yield CheckResult(CheckStatus.OK, text)


class ProcessLimits(DoctorCheck):
    """Limits of open files, processes and locked memory."""

    title = "Limits"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the limits; the server raises soft limits itself."""
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
        text = "unlimited" if files == resource.RLIM_INFINITY else str(files)
        if files != resource.RLIM_INFINITY and files < _FEW_FILES:
            yield CheckResult(
                CheckStatus.WARN,
                f"at most {text} open files: connections, models and workers use several each",
                "ulimit -Hn 65536, LimitNOFILE= of systemd, or --ulimit nofile of Docker.",
            )
        else:
            yield CheckResult(CheckStatus.OK, f"open files: {text}")
        tasks = read_kernel_file(CGROUP / "pids.max")
        if tasks.isdigit() and int(tasks) < _BACKLOG:
            yield CheckResult(
                CheckStatus.WARN,
                f"the container may have {tasks} threads and processes",
                "Raise it: --pids-limit of Docker, or podPidsLimit of Kubernetes.",
            )
        locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        amount = "unlimited" if locked == resource.RLIM_INFINITY else size_text(locked)
        yield CheckResult(CheckStatus.OK, f"locked memory: {amount}")


class DiskSpace(DoctorCheck):
    """Free space for caches and temporary files."""

    title = "Disk"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the free space of the folders that the server may fill."""
        folders = {
            "temporary files": Path(os.environ.get("TMPDIR", "/tmp")),  # noqa: S108 - only measured
            "caches": Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")),
        }
        for purpose, folder in folders.items():
            existing = next(each for each in (folder, *folder.parents) if each.exists())
            space = shutil.disk_usage(existing)
            text = f"{purpose} ({folder}): {size_text(space.free)} free"
            if space.free < _LITTLE_DISK:
                yield CheckResult(CheckStatus.WARN, text, "Free space, or use another folder.")
            elif not os.access(existing, os.W_OK):
                yield CheckResult(
                    CheckStatus.WARN,
                    f"{folder} is not writable",
                    f"chown it to user {os.getuid()}.",
                )
            else:
                yield CheckResult(CheckStatus.OK, text)


class KernelSettings(DoctorCheck):
    """Settings of the kernel for many connections."""

    title = "Kernel"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the length of the queue of new connections."""
        release = os.uname().release
        yield CheckResult(CheckStatus.OK, f"Linux {release}")
        backlog = read_kernel_file(PROCESSES / "sys/net/core/somaxconn")
        if backlog.isdigit() and int(backlog) < _BACKLOG:
            yield CheckResult(
                CheckStatus.WARN,
                f"net.core.somaxconn is {backlog}: bursts of new connections are dropped",
                "sysctl -w net.core.somaxconn=4096",
            )


class SystemClock(DoctorCheck):
    """The clock, which tokens and certificates depend on."""

    title = "Clock"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield time and time zone."""
        now = time.localtime()
        text = time.strftime("%Y-%m-%d %H:%M:%S %Z", now)
        if now.tm_year < _RELEASE_YEAR:
            yield CheckResult(
                CheckStatus.FAIL,
                f"the clock shows {text}: certificates and tokens are not valid yet",
                "Set the clock: timedatectl set-ntp true",
            )
        else:
            yield CheckResult(CheckStatus.OK, text)


class Gpus(DoctorCheck):
    """GPUs, their driver, and the packages that use them."""

    title = "GPUs"
    folder = PROCESSES / "driver/nvidia"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the GPUs and what prevents their use."""
        nodes = sorted(DEVICES.glob("nvidia[0-9]*"))
        driver = read_kernel_file(self.folder / "version").partition("\n")[0]
        if not nodes and not driver:
            yield CheckResult(CheckStatus.OK, "no NVIDIA GPU: models run on the CPU")
            return
        yield CheckResult(CheckStatus.OK, f"driver: {driver or 'unknown'}")
        if not nodes:
            yield CheckResult(
                CheckStatus.FAIL,
                "a driver is loaded, but no GPU is visible here",
                "Docker: --gpus all. Kubernetes: resources: limits: nvidia.com/gpu: 1.",
            )
            return
        yield from self._listed()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is not None and visible.strip() in {"", "-1"}:
            yield CheckResult(
                CheckStatus.WARN,
                "CUDA_VISIBLE_DEVICES hides every GPU",
                "unset CUDA_VISIBLE_DEVICES",
            )
        if "cuda" not in make_plugin_manager().table("tritonpy_devices"):
            yield CheckResult(
                CheckStatus.WARN,
                "the plugin for GPUs is not installed: models run on the CPU",
                install_command("tritonpy[gpu]"),
            )
        installed = {each.metadata["Name"] for each in importlib.metadata.distributions()}
        if "onnxruntime" in installed and "onnxruntime-gpu" not in installed:
            yield CheckResult(
                CheckStatus.WARN,
                "onnxruntime is the build for the CPU",
                install_command("tritonpy-backend-onnx[gpu]"),
            )

    def _listed(self) -> Iterator[CheckResult]:
        if shutil.which("nvidia-smi") is None:
            return
        command = [
            "nvidia-smi",
            "--query-gpu=name,memory.total,mig.mode.current",
            "--format=csv,noheader",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=3, check=False)
        except subprocess.TimeoutExpired:
            yield CheckResult(
                CheckStatus.FAIL, "nvidia-smi does not answer", "Restart the driver or the machine."
            )
            return
        if done.returncode:
            yield CheckResult(
                CheckStatus.FAIL,
                f"nvidia-smi fails: {done.stdout.strip() or done.stderr.strip()}",
                "Install a driver that fits the kernel, or restart the machine after an update.",
            )
            return
        for line in done.stdout.strip().splitlines():
            yield CheckResult(CheckStatus.OK, line)
