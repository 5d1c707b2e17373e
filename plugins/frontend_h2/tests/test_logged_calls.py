from __future__ import annotations

from plugins.frontend_grpc.tests.wire.scenarios.logged_calls import *  # noqa: F403
