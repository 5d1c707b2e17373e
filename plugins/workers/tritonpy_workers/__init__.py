"""Instances in worker processes, behind the hook `tritonpy_runners`.

Start at `runner`: `WorkerRunnerFactory` makes one `WorkerRunner` per model version.
`backend_process` runs inside the workers. The package may import public names of `tritonpy`,
`tritonpy_ipc` and `tritonpy_engine_rpc`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_runners() -> Mapping[str, str]:
    return {"process": "tritonpy_workers.runner:WorkerRunnerFactory"}
