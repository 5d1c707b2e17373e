"""What an ensemble began is finished, though one of its models is taken out meanwhile."""

from __future__ import annotations

from tritonpy.model.closed import ModelClosed
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.table import ModelTable
from tritonpy.types import InferRequest


def leave_to_member(request: InferRequest, table: ModelTable) -> bool:
    """Hand a step of an ensemble to the model on which the ensemble was built, if that is on its way out: it closes after the ensemble.

    Returns whether that model has it now. Raises what the model has against it.
    """
    parent = request.parent
    owner = parent.owner if parent is not None else None
    if not isinstance(owner, LoadedModel):
        return False
    member = owner.members.get((request.model_name, request.model_version))
    if member is None or member in table.ready(request.model_name):
        return False
    try:
        member.infer(request)
    except ModelClosed:
        return False
    return True
