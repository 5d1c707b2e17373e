from __future__ import annotations

from plugins.frontend_grpc.tests.wire.scenarios.methods import *  # noqa: F403
