"""Frame kinds that only frontend processes and the engine's process use."""

from __future__ import annotations

# Frontend process to engine.
INFER = 48
CANCEL = 49
TAKEN = 50
NOTES = 51
# Engine to frontend process.
RESPONSES = 56
