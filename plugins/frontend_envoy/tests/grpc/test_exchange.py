from __future__ import annotations

from plugins.frontend_grpc.tests.wire.scenarios.exchange import *  # noqa: F403
