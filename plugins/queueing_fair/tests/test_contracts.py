from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import tritonpy_queueing_fair
from tritonpy_queueing_fair.fair_sharing import FairSharing
from tritonpy_testing import SharingContract


class TestFairSharing(SharingContract):
    plugin = tritonpy_queueing_fair
    plugin_class = FairSharing
    name = "fair"
    options: ClassVar[Mapping[str, Any]] = {"default": {"requests_per_s": 5, "concurrent": 3}}
