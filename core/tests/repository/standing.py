"""Ensembles of the toy kind over tellers."""

from __future__ import annotations

from tritonpy.testing import ModelRepository

from ..toys.ensemble import EnsembleScheduler
from ..toys.serving import ToyPlugin
from .teller import write

PLUGIN = ToyPlugin(schedulers={"ensemble": EnsembleScheduler})


def steps(*members: str, version: int = -1, datatype: str = "INT32") -> str:
    """Return the configuration of an ensemble that asks `members` one after the other."""
    names = ["IN", *(f"tensor{number}" for number in range(1, len(members))), "OUT"]
    said = [
        f'step {{ model_name: "{member}" model_version: {version} '
        f'input_map {{ key: "IN" value: "{names[number]}" }} output_map {{ key: "OUT" value: "{names[number + 1]}" }} }}'
        for number, member in enumerate(members)
    ]
    return f"""
        platform: "ensemble"
        input {{ name: "IN" data_type: TYPE_{datatype} dims: 1 }}
        output {{ name: "OUT" data_type: TYPE_{datatype} dims: 1 }}
        ensemble_scheduling {{ {" ".join(said)} }}
    """


def write_ensemble(
    repository: ModelRepository, name: str, *members: str, version: int = -1, datatype: str = "INT32"
) -> None:
    """Write an ensemble; each write has a time of its own."""
    write(repository, name, config=steps(*members, version=version, datatype=datatype))
