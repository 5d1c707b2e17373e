"""Python environments of models: selection, building and caching.

The rule for each version of a model:

1. The *base* is EXECUTION_ENV_PATH (a packed environment or a folder), else an interpreter of the
   version PYTHON_VERSION, else the server's own interpreter. If both parameters are set, the
   environment is used and must have that version.
2. Without a requirements.txt, the model runs in the base.
3. With one (next to model.py, else in the model's folder), it runs in its own virtual environment.
   This is built from the base and cached for every model with the same requirements. On an
   EXECUTION_ENV_PATH it is a layer: packages of the base can be imported and count as installed. On
   the server's interpreter or a PYTHON_VERSION it is isolated: it has the required packages and
   numpy. A PYTHON_VERSION without a requirements.txt only has numpy.
4. Every environment needs Python 3.9 or newer and numpy 1.21 or newer.

The first build freezes requirements without exact versions. A changed text or an emptied cache
leads to a new build.

The cache is the backend's option `environments-dir`, or `$XDG_CACHE_HOME/tritonpy/environments`, or
`~/.cache/tritonpy/environments`. Every build first removes environments that were unused for 30
days; `prune` does so at any time. An environment is never removed while a process uses it. If the
folder is shared with other machines and its file system supports locks, their processes count, too.
"""

from __future__ import annotations

from tritonpy_backend_python.environments.environment import Environment
from tritonpy_backend_python.environments.pruning import prune
from tritonpy_backend_python.environments.resolution import EnvironmentOptions, resolve_environment

__all__ = ["Environment", "EnvironmentOptions", "prune", "resolve_environment"]
