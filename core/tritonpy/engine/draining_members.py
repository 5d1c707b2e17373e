"""Inference on draining versions, for steps of ensembles that were built with them."""

from __future__ import annotations

from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.model_closed import ModelClosed
from tritonpy.repository.model_table import ModelTable
from tritonpy.types import InferRequest


def infer_on_draining_member(request: InferRequest, table: ModelTable) -> bool:
    """Send a step of an ensemble to its member version, if that version is draining.

    A draining member closes after the ensembles that were built with it. Returns whether the member
    accepted the request. Raises the member's errors.
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
