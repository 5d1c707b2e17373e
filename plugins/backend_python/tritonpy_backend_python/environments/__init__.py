"""Where a model's interpreter comes from.

The rule, for each version of a model:

1. The *base* is what the parameter EXECUTION_ENV_PATH names (a packed environment or a folder), else an interpreter of
   the version that the parameter PYTHON_VERSION names, else the server's own interpreter. Where both are given, the environment counts
   and has to be of that version.
2. Without a requirements.txt the model runs in the base.
3. With one (beside model.py, else in the model's folder) it runs in a virtual environment of its own, which is built from the base
   and kept in the cache for every model with the same requirements. On an EXECUTION_ENV_PATH it is a layer: what is installed below
   can be imported, and counts as installed. On the server's own interpreter or a PYTHON_VERSION it is isolated: it holds
   what the file names, and numpy. A PYTHON_VERSION without a requirements.txt has numpy alone.
4. Whatever is chosen has to have Python 3.9 or newer and numpy 1.21 or newer.

Requirements without exact versions are frozen by the first build: another text, or an emptied cache, builds anew.

The cache is the backend's option `environments-dir`, or `$XDG_CACHE_HOME/tritonpy/environments`, or `~/.cache/tritonpy/environments`.
Every build first removes what nobody has used for 30 days, so that a cache that grows is also cleaned;
`prune` does so at any time. No environment is removed while a process on this machine uses it, or on another machine that
shares the folder through a file system with locks.
"""

from __future__ import annotations

from tritonpy_backend_python.environments.environment import Environment
from tritonpy_backend_python.environments.pruning import prune
from tritonpy_backend_python.environments.resolve import EnvironmentOptions, resolve_environment

__all__ = ["Environment", "EnvironmentOptions", "prune", "resolve_environment"]
