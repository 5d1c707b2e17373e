"""Installs the test requirements and runs the tests: `python3 tests/run.py`. Needs Python 3.11.

Each tier with further requirements has its own environment under .test-venv/, layered on the
default one; later runs reuse it. Arguments after `--` go to pytest: `python3 tests/run.py
packages -- -k batching`. Without any argument, long suites are sampled by a printed seed, and some
tiers with heavy packages take turns by another one; `--all` runs everything. With several tiers and
cores, three tiers run at a time (`--at-once 1` runs them in order), because they wait most of the
time. The output of a tier then appears when the tier has ended.

Up to five failed tests of a tier are repeated once when all tiers have ended. Those that then pass
are printed as flaky: they depend on the load of the machine, which is a defect of the test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import compiler  # noqa: E402
import distributions  # noqa: E402

sys.path.remove(str(ROOT / "tools"))
ENVIRONMENTS = ROOT / ".test-venv"
DEFAULT_ENVIRONMENT = ENVIRONMENTS / "default"
MAX_REPEATED = 5  # more failed tests of a tier than this are no coincidence


@dataclass(frozen=True)
class Tier:
    """The pytest arguments of a tier and the additions to the default environment.

    `packages` are installed in editable form, `requirements` names files, `removed` names
    packages that those bring along. `variables` are environment variables of pytest. If `compiled`, the packages with compiled modules are
    installed compiled (see tools/compiler.py).
    """

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False


def _framework(name: str, package: str, *more: str) -> Tier:
    """Return the tier of a package with large dependencies; `more` are further test paths."""
    return Tier(
        (f"{package}/tests", *more),
        packages=(package,),
        requirements=(f"tests/requirements-{name}.txt",),
    )


ON_EVERY_TRANSPORT = (
    "tests/test_access.py",
    "tests/test_aio_clients.py",
    "tests/test_cancellation.py",
    "tests/test_clients.py",
    "tests/test_failures.py",
    "tests/test_generate_stream.py",
    "tests/test_sequences.py",
    "tests/test_shared_memory.py",
    "tests/test_shutdown.py",
    "tests/test_request_log.py",
    "tests/test_transport.py",
)
# Tiers whose packages are too large for the default environment, which has all others.
_LARGE = {
    "clouds": _framework("clouds", "plugins/repo_cloud", "tests/offline_stores"),
    "torch": _framework(
        "torch", "plugins/backend_torch", "plugins/backend_python/tests/worker/api"
    ),
    "tf": _framework("tf", "plugins/backend_tf"),
    "openvino": _framework("openvino", "plugins/backend_openvino"),
    "trt": _framework("trt", "plugins/backend_trt"),
    "transformer": _framework("transformer", "plugins/backend_transformer"),
    "llamacpp": _framework("llamacpp", "plugins/backend_llamacpp", "tests/gguf_models"),
}


def default_packages() -> list[str]:
    """Return the folders of the distributions that the default environment has, those of the core first."""
    large = {package for tier in _LARGE.values() for package in tier.packages}
    projects = (
        path.parent
        for pattern in ("libs", "plugins")
        for path in sorted(ROOT.glob(f"{pattern}/*/pyproject.toml"))
    )
    return [
        "protos",
        "core",
        *(each for project in projects if (each := str(project.relative_to(ROOT))) not in large),
    ]


def compiled_packages() -> list[str]:
    """Return the folders of the distributions that have compiled modules."""
    return [
        str(each.folder.relative_to(ROOT))
        for each in distributions.read_distributions().values()
        if compiler.compiled_modules(each)
    ]


# Packages of the default environment whose tests take long: they have tiers of their own.
_MEASURING = ("plugins/analyzer", "plugins/backend_c", "plugins/batch", "plugins/bench")
_SEPARATE = ("core", "plugins/backend_python", *_MEASURING)

# Tiers start in this order: long ones first, so that parallel runs end together.
TIERS = {
    "packages": Tier(
        tuple(f"{folder}/tests" for folder in default_packages() if folder not in _SEPARATE)
    ),
    "python": Tier(("plugins/backend_python/tests",)),
    # Many processes that are measured, killed or compiled; most of the time they are waited for.
    "processes": Tier(tuple(f"{folder}/tests" for folder in _MEASURING)),
    "servers": Tier(
        ("tests",),
        tuple(
            f"--ignore=tests/{each}"
            for each in (
                "conformance",
                "deployment",
                "frameworks",
                "gguf_models",
                "language_models",
                "offline_stores",
                "ray_cluster",
            )
        ),
    ),
    "core": Tier(("core/tests",)),
    "vllm": Tier(
        ("tests/language_models",),
        requirements=("tests/requirements-vllm.txt",),
        # vLLM's dependencies in versions for other builds of torch, with which imports fail.
        removed=("torchvision", "torchaudio", "torchcodec"),
    ),
    "conformance": Tier(("tests/conformance",)),
    # Images, charts and manifests.
    "deployment": Tier(("tests/deployment",), requirements=("tests/requirements-deployment.txt",)),
    "ray": Tier(("tests/ray_cluster",), requirements=("tests/requirements-ray.txt",)),
    "frameworks": Tier(
        ("tests/frameworks",),
        packages=(
            "plugins/backend_torch",
            "plugins/backend_tf",
            "plugins/backend_openvino",
            "plugins/backend_transformer",
        ),
        requirements=("tests/requirements-frameworks.txt",),
    ),
    # Suites that start servers as processes, a fixed sample of the exchanges with the real Triton, and
    # the tests of frontend_grpc on grpcio; the other tiers use the transport h2.
    "grpcio": Tier(
        (
            "plugins/frontend_grpc/tests",
            *ON_EVERY_TRANSPORT,
            "tests/test_frontend_processes.py",
            "tests/conformance/test_both_servers.py",
        ),
        variables={
            "TRITONPY_TEST_TRANSPORT": "grpcio",
            "TRITONPY_CONFORMANCE_SHARE": "0.05",
            "TRITONPY_CONFORMANCE_SEED": "1754776926",
        },
    ),
    # The request path as machine code: the tests of the packages that have some.
    "compiled": Tier(
        (
            *(f"{package}/tests" for package in compiled_packages()),
            "tests/test_clients.py",
            "tests/test_failures.py",
            "tests/test_shutdown.py",
        ),
        compiled=True,
    ),
    **_LARGE,
}


# Tiers whose environments take long to make. The plain test command runs some of them in turn.
ROTATING = ("vllm", "deployment", "ray", "compiled")
ROTATING_AT_ONCE = 2
ROTATION_SEED = "TRITONPY_ROTATION_SEED"
# What the plain test command runs of the suites that take longest, by seeds that are printed.
SHARES = {"TRITONPY_CONFORMANCE_SHARE": "0.12", "TRITONPY_SUITE_SHARE": "0.3"}
SEEDS = ("TRITONPY_CONFORMANCE_SEED", "TRITONPY_SUITE_SEED")


def main() -> int:
    """Run the chosen tiers, then print the duration of each."""
    parser = argparse.ArgumentParser(description="Install what the tests need and run them.")
    parser.add_argument(
        "tiers", nargs="*", metavar="TIER", help=f"which tiers (default: all of {', '.join(TIERS)})"
    )
    at_once = 3 if (os.cpu_count() or 1) > 1 else 1
    parser.add_argument(
        "--at-once",
        type=int,
        default=at_once,
        help=f"tiers that run at a time (default: {at_once})",
    )
    own, _, rest = _split(sys.argv[1:])
    parser.add_argument(
        "--all", action="store_true", help="run everything; without tiers, long suites are sampled"
    )
    arguments = parser.parse_args(own)
    if not (arguments.all or arguments.tiers or rest):
        for variable, share in SHARES.items():
            os.environ.setdefault(variable, share)
    for variable in SEEDS:  # the same for all tiers and for a repetition
        os.environ.setdefault(variable, str(SystemRandom().randrange(1 << 32)))
    chosen = arguments.tiers or list(TIERS)
    if not (arguments.all or arguments.tiers or rest):
        chosen = _rotated(chosen)
    unknown = [name for name in chosen if name not in TIERS]
    if unknown:
        parser.error(f"no tier '{unknown[0]}', there are: {', '.join(TIERS)}")
    results = _run_all(chosen, max(1, min(arguments.at_once, len(chosen))), rest)
    for name in chosen:
        results[name] = _without_flaky(name, *results[name])
    for name in chosen:
        status, minutes = results[name]
        print(f"tier {name}: {'passed' if status == 0 else 'FAILED'} in {minutes:.1f} min")
    return max(status for status, _ in results.values())


def _rotated(tiers: Sequence[str]) -> list[str]:
    """Return the tiers of this run: some of `ROTATING`, by a seed that is printed, and all others."""
    seed = int(os.environ.setdefault(ROTATION_SEED, str(SystemRandom().randrange(1 << 32))))
    taken = Random(seed).sample(ROTATING, ROTATING_AT_ONCE)
    omitted = [name for name in ROTATING if name not in taken]
    print(
        f"{ROTATION_SEED}={seed} runs {', '.join(taken)} and leaves out {', '.join(omitted)}; "
        "--all runs every tier",
        flush=True,
    )
    return [name for name in tiers if name not in omitted]


def _run_all(
    chosen: Sequence[str], at_once: int, pytest_arguments: list[str]
) -> dict[str, tuple[int, float]]:
    """Return exit status and minutes of each tier; tiers start in the given order."""
    _installed(DEFAULT_ENVIRONMENT, default_packages(), ("tests/requirements.txt",))
    if at_once == 1:
        return {name: _run(name, pytest_arguments) for name in chosen}
    results: dict[str, tuple[int, float]] = {}
    with ThreadPoolExecutor(at_once) as lanes:
        logs = {name: ENVIRONMENTS / f"{name}.log" for name in chosen}
        running = {
            lanes.submit(_run, name, pytest_arguments, log): name for name, log in logs.items()
        }
        for ended in as_completed(running):
            name = running[ended]
            results[name] = ended.result()
            print(logs[name].read_text(errors="replace"), flush=True)
    return results


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], "--", arguments[at + 1 :]


def _run(name: str, pytest_arguments: list[str], log: Path | None = None) -> tuple[int, float]:
    """Return exit status and minutes of a tier; its output goes to `log`, or to our own output."""
    tier, started = TIERS[name], time.monotonic()
    reason = missing_compiler() if tier.compiled else ""
    if reason:
        print(f"tier {name}: SKIPPED, it {reason}", flush=True)
        if log is not None:
            log.write_text("")
        return 0, 0.0
    python = _environment(name, tier)
    where = f", its output goes to {log}" if log else ""
    print(
        f"tier {name}: environment ready after {(time.monotonic() - started) / 60:.1f} min{where}",
        flush=True,
    )
    _failures(name).unlink(missing_ok=True)
    status = _pytest(name, python, [*tier.paths, *tier.options, *pytest_arguments], log)
    return status, (time.monotonic() - started) / 60


def _pytest(name: str, python: str, arguments: list[str], log: Path | None = None) -> int:
    with ExitStack() as stack:
        output = stack.enter_context(log.open("w")) if log else None
        return subprocess.run(
            [python, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}", *arguments],
            cwd=ROOT, env={**os.environ, **TIERS[name].variables}, stdout=output, stderr=output, check=False,
        ).returncode  # fmt: skip


def missing_compiler() -> str:
    """Return why nothing can be compiled, or ""."""
    try:
        compiler.check_compiler()
    except compiler.CompilationFailed as error:
        return f"needs a C compiler, {error}"
    return ""


def _failures(name: str) -> Path:
    """Return the file in which pytest lists the failed tests of a tier."""
    return ROOT / ".pytest_cache" / name / "v" / "cache" / "lastfailed"


def _without_flaky(name: str, status: int, minutes: float) -> tuple[int, float]:
    """Repeat the failed tests of a tier if they are few; return its status and minutes."""
    if status != 1 or not _failures(name).exists():  # 1: pytest ran to its end and tests failed
        return status, minutes
    failed, started = list(json.loads(_failures(name).read_text())), time.monotonic()
    if not failed or len(failed) > MAX_REPEATED:
        return status, minutes
    print(f"tier {name}: repeating {len(failed)} failed tests", flush=True)
    status = _pytest(name, _environment(name, TIERS[name]), failed)
    if status == 0:
        print(f"tier {name}: FLAKY, passed when repeated: {' '.join(failed)}", flush=True)
    return status, minutes + (time.monotonic() - started) / 60


def _environment(name: str, tier: Tier) -> str:
    """Return the interpreter of the tier's environment: the default one without additions."""
    if tier.compiled:
        return _compiled(ENVIRONMENTS / name)
    if not tier.packages and not tier.requirements:
        return str(DEFAULT_ENVIRONMENT / "bin" / "python")
    python = _installed(
        ENVIRONMENTS / name, tier.packages, tier.requirements, over=DEFAULT_ENVIRONMENT
    )
    if tier.removed:
        command = [python, "-m", "pip", "uninstall", "-q", "-y", *tier.removed]
        subprocess.run(command, cwd=ROOT, check=True)
    return python


def _installed(
    folder: Path, packages: Sequence[str], requirements: Sequence[str], over: Path | None = None
) -> str:
    """Return the interpreter of an environment with those packages.

    The environment includes the packages of `over`, except those that it has in another version.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if over is not None:
        _site(folder).joinpath("over.pth").write_text(
            f"import site; site.addsitedir({str(_site(over))!r})\n"
        )
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if requirements:
        files = [part for requirement in requirements for part in ("-r", requirement)]
        subprocess.run([*install, *files], cwd=ROOT, check=True)
    if packages:
        # pip rejects editable installs of siblings that refer to each other by folder, so plain
        # names are used. The requirements include the build backends, so that pip does not install
        # them again for each package.
        environment = {**os.environ, "TRITONPY_PLAIN_DEPENDENCIES": "1"}
        folders = [part for package in packages for part in ("-e", f"./{package}")]
        command = [*install, "--no-build-isolation", *folders]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return str(python)


def _compiled(folder: Path) -> str:
    """Return the interpreter of an environment with compiled packages over the default ones."""
    python, packages = folder / "bin" / "python", compiled_packages()
    sources = [ROOT / "tools" / "compiler.py"]
    for package in packages:
        sources.append(ROOT / package / "pyproject.toml")
        sources += sorted((ROOT / package).glob("tritonpy*/**/*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = folder / "compiled"
    if stamp.exists() and stamp.read_text() == digest:
        return str(python)
    stamp.unlink(missing_ok=True)
    _installed(folder, (), (), over=DEFAULT_ENVIRONMENT)
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--force-reinstall"]
    subprocess.run(
        [*command, *options, *(f"./{package}" for package in packages)],
        cwd=ROOT,
        env={**os.environ, "TRITONPY_PLAIN_DEPENDENCIES": "1"},
        check=True,
    )
    compile_with = [str(DEFAULT_ENVIRONMENT / "bin" / "python"), "tools/compiler.py"]
    subprocess.run([*compile_with, "--environment", folder], cwd=ROOT, check=True)
    check = "from tritonpy.version import is_compiled; assert is_compiled()"
    subprocess.run([str(python), "-c", check], check=True)
    stamp.write_text(digest)
    return str(python)


def _site(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
