"""Check types and import contracts: `python tools/checks.py types contracts`.

Both need the list of packages of the checkout, which is read from its folders: `core`, `protos`,
`libs/*` and `plugins/*`. Run it with the interpreter of the default test environment (see
tests/run.py). The plugins of other test environments need not be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from distributions import ROOT, read_distributions

CORE, PROTOS = "tritonpy", "tritonpy_protos"
# They run where the core is not installed, or are of use to others.
STANDALONE = ("tritonpy_ipc", "tritonpy_http1", "tritonpy_http2", PROTOS)
# The libraries below the core, each with the packages of the checkout that it imports.
BELOW_CORE = {
    "tritonpy_ipc": (),
    "tritonpy_types": (PROTOS,),
    "tritonpy_config": ("tritonpy_types", PROTOS),
    "tritonpy_checks": ("tritonpy_types", "tritonpy_config", PROTOS),
    "tritonpy_metrics": ("tritonpy_types", "tritonpy_config"),
    "tritonpy_network": ("tritonpy_types", "tritonpy_config", "tritonpy_metrics"),
    "tritonpy_batching": ("tritonpy_types", "tritonpy_ipc", PROTOS),
}
# The namespaces of the core that plugins and libraries import from, besides `tritonpy` itself. The
# modules of a namespace that is a package are private.
NAMESPACES = (
    "auth",
    "config",
    "execution",
    "frontend",
    "metrics",
    "plugins",
    "repository",
    "scheduling",
    "server",
    "tracing",
)
# Further import roots inside plugins, with their packages: they run in the interpreter of a model.
WORKER_ROOTS = {
    "tritonpy_worker": ROOT / "plugins/backend_python/tritonpy_backend_python/worker",
    "tritonpy_llamacpp": ROOT / "plugins/backend_llamacpp/tritonpy_backend_llamacpp/backend",
    "tritonpy_text_backend": ROOT / "plugins/backend_python/tritonpy_backend_python/worker",
    "tritonpy_vllm": ROOT / "plugins/backend_vllm/tritonpy_backend_vllm/backend",
}


def main() -> int:
    """Run the named checks and return the exit status."""
    checks = {"types": check_types, "contracts": check_contracts}
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    parser.add_argument("checks", nargs="+", choices=checks)
    return max([checks[name]() for name in parser.parse_args().checks])


def packages() -> dict[str, Path]:
    """Return the folder that has each import package of the checkout."""
    found = {}
    for distribution in read_distributions().values():
        names = [path.parent.name for path in distribution.folder.glob("tritonpy*/__init__.py")]
        found |= dict.fromkeys(names, distribution.folder)
    return found


def check_types() -> int:
    """Run mypy over all packages."""
    found = packages()
    roots = dict.fromkeys([*found.values(), *WORKER_ROOTS.values()])
    arguments = [option for name in [*found, *WORKER_ROOTS] for option in ("-p", name)]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, roots))}
    return subprocess.run(
        [sys.executable, "-m", "mypy", *arguments], cwd=ROOT, env=environment, check=False
    ).returncode


def check_contracts() -> int:
    """Run import-linter over all packages, imports for type checking included."""
    found = packages()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, dict.fromkeys(found.values()))),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as settings:
        settings.write(_toml(contracts(found)))
        settings.flush()
        command = [
            str(Path(sys.executable).with_name("lint-imports")),
            "--config",
            settings.name,
            "--no-cache",
        ]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def contracts(found: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Return the contracts of import-linter for the given packages."""
    libraries = sorted(name for name, folder in found.items() if folder.parent.name == "libs")
    plugins = sorted(name for name, folder in found.items() if folder.parent.name == "plugins")
    standalone = [name for name in STANDALONE if name in found]
    users = [name for name in (*libraries, *plugins) if name not in {*standalone, *BELOW_CORE}]
    alone = [
        {
            "name": f"{name} imports {' and '.join(used) or 'nothing of tritonpy'}",
            "type": "forbidden",
            "source_modules": [name],
            "forbidden_modules": sorted({*found} - {name, *used}),
            "allow_indirect_imports": True,
        }
        for name, used in {**dict.fromkeys(standalone, ()), **BELOW_CORE}.items()
        if name in found
    ]
    return [
        {
            "name": "the core imports no plugin and only the libraries below it",
            "type": "forbidden",
            "source_modules": [CORE],
            "forbidden_modules": sorted({*libraries, *plugins} - {*BELOW_CORE}),
            "allow_indirect_imports": True,
        },
        {
            "name": "plugins and libraries use the public names of the core",
            "type": "forbidden",
            "source_modules": users,
            "forbidden_modules": private_modules(),
            "allow_indirect_imports": True,
        },
        {"name": "plugins do not import each other", "type": "independence", "modules": plugins},
        *alone,
    ]


def private_modules() -> list[str]:
    """Return the modules of the core that are not public namespaces, nested ones included."""
    found = []
    for path in sorted((ROOT / "core" / CORE).iterdir()):
        name = path.stem if path.suffix == ".py" else path.name
        if (
            path.suffix not in {".py", ""}
            or name.startswith("__")
            or not (path.suffix or any(path.glob("*.py")))
        ):
            continue
        if name not in NAMESPACES:
            found.append(f"{CORE}.{name}")
        elif path.is_dir():
            found.append(f"{CORE}.{name}.*")
    return found


def _toml(every: Iterable[Mapping[str, Any]]) -> str:
    lines = ["[tool.importlinter]", f"root_packages = {json.dumps(sorted(packages()))}"]
    for contract in every:
        lines.append("[[tool.importlinter.contracts]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in contract.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
