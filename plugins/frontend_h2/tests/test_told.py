from __future__ import annotations

from plugins.frontend_grpc.tests.wire.scenarios.told import *  # noqa: F403
