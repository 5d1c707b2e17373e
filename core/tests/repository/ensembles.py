"""Toy ensembles over models of the version reporter."""

from __future__ import annotations

from tritonpy_testing import ModelRepository

from ..toys.ensemble import EnsembleScheduler
from ..toys.serving import ToyPlugin
from .version_backend import write

PLUGIN = ToyPlugin(schedulers={"ensemble": EnsembleScheduler})


def ensemble_config(*members: str, version: int = -1, datatype: str = "INT32") -> str:
    """Return the configuration of an ensemble that runs `members` in order."""
    names = ["IN", *(f"tensor{number}" for number in range(1, len(members))), "OUT"]
    step_texts = [
        f'step {{ model_name: "{member}" model_version: {version} '
        f'input_map {{ key: "IN" value: "{names[number]}" }} output_map {{ key: "OUT" value: "{names[number + 1]}" }} }}'
        for number, member in enumerate(members)
    ]
    return f"""
        platform: "ensemble"
        input {{ name: "IN" data_type: TYPE_{datatype} dims: 1 }}
        output {{ name: "OUT" data_type: TYPE_{datatype} dims: 1 }}
        ensemble_scheduling {{ {" ".join(step_texts)} }}
    """


def write_ensemble(
    repository: ModelRepository,
    name: str,
    *members: str,
    version: int = -1,
    datatype: str = "INT32",
) -> None:
    """Write an ensemble with a unique modification time."""
    write(repository, name, config=ensemble_config(*members, version=version, datatype=datatype))
