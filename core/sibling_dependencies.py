"""Names the core's dependencies: its default plugins by folder in a source checkout, by plain name elsewhere.

In a checkout the plugins are not on any index, so they must resolve to the sibling folders. A release, and a
development environment that installs the folders in editable form, need plain names: set TRITONPY_PLAIN_DEPENDENCIES=1.
"""

from __future__ import annotations

import os
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LIBRARIES = [
    "pluggy>=1.6",
    "msgspec>=0.20",
    "numpy>=2.1",
    "ml_dtypes>=0.5",
    "protobuf>=6.33,<8",
    "pyyaml>=6",
    "uvloop>=0.21; sys_platform != 'win32'",
]
SIBLINGS = {
    "tritonpy-protos": "protos",
    "tritonpy-frontend-http": "plugins/frontend_http",
    "tritonpy-frontend-grpc": "plugins/frontend_grpc",
    "tritonpy-frontend-h2": "plugins/frontend_h2",
    "tritonpy-batching-dynamic": "plugins/batching_dynamic",
    "tritonpy-batching-sequence": "plugins/batching_sequence",
    "tritonpy-ensemble": "plugins/ensemble",
    "tritonpy-cache-local": "plugins/cache_local",
    "tritonpy-metrics-prometheus": "plugins/metrics_prometheus",
}


class SiblingDependencies(MetadataHookInterface):
    """Fills `project.dependencies`."""

    def update(self, metadata: dict[str, object]) -> None:
        """Put libraries and siblings into `metadata`."""
        metadata["dependencies"] = LIBRARIES + [self._requirement(name, folder) for name, folder in SIBLINGS.items()]

    def _requirement(self, name: str, folder: str) -> str:
        path = Path(self.root).parent / folder
        if os.environ.get("TRITONPY_PLAIN_DEPENDENCIES") == "1" or not (path / "pyproject.toml").is_file():
            return name
        return f"{name} @ {path.as_uri()}"
