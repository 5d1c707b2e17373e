"""Options of the backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import StartupError
from tritonpy_testing import running_server

NO_PORTS = {"http": False, "grpc": False, "metrics": False}


def serve(folder: Path, **options: object) -> None:
    settings = {
        "repositories": [{"url": str(folder)}],
        "frontends": NO_PORTS,
        "backends": {"python": options},
    }
    with running_server(settings):
        pass


def test_tritons_own_keys_are_accepted_in_both_spellings(tmp_path: Path) -> None:
    serve(
        tmp_path,
        **{
            "shm-default-byte-size": 1 << 20,
            "shm_growth_byte_size": 1 << 20,
            "stub-timeout-seconds": 60,
        },
    )


def test_sizes_may_have_a_unit(tmp_path: Path) -> None:
    serve(tmp_path, memory_limit="2GiB")


@pytest.mark.parametrize(
    "options", [{"memory_limt": "2GiB"}, {"execution-limit-seconds": -1}, {"memory-limit": "much"}]
)
def test_a_wrong_option_is_found_at_start(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(StartupError, match=next(iter(options))[:6]):
        serve(tmp_path, **options)
