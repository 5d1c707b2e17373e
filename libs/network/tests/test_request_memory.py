from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from tritonpy import ResourceExhausted
from tritonpy.frontend import RequestMemory, RequestMemoryFull
from tritonpy_network.request_memory import SMALL, memory_limit, memory_metrics, request_memory

MIB = 2**20


def held(memory: RequestMemory, *sizes: int) -> list[object]:
    """Reserve memory for one client per size; return the reservations."""
    reservations = [memory.client().reservation() for _ in sizes]
    assert all(each.grow(size) for each, size in zip(reservations, sizes, strict=True))
    return list(reservations)


def test_reserved_bytes_count_until_the_reservation_is_garbage() -> None:
    memory = RequestMemory(16 * MIB)
    reservation = memory.client().reservation()
    assert reservation.grow(MIB)
    assert reservation.grow(MIB // 2)  # less than it holds
    assert memory.used == MIB
    reservation.shrink(1000)
    assert memory.used == 1000
    del reservation
    assert memory.used == 0


def test_a_single_client_gets_half_of_the_shared_memory() -> None:
    memory = RequestMemory(16 * MIB)
    reservation = memory.client().reservation()
    assert not reservation.grow(7 * MIB + 1)
    assert reservation.grow(7 * MIB)
    assert not reservation.grow(7 * MIB + 1)
    assert reservation.nbytes == memory.used == 7 * MIB
    assert memory.refused == 2


def test_reservations_of_one_client_count_together() -> None:
    client = RequestMemory(16 * MIB).client()
    first, second = client.reservation(), client.reservation()
    assert first.grow(4 * MIB)
    assert not second.grow(4 * MIB)
    assert second.grow(3 * MIB)


@pytest.mark.parametrize("clients", [2, 10, 100])
def test_greedy_clients_leave_a_share_for_the_next(clients: int) -> None:
    memory = RequestMemory(160 * MIB)
    reservations = [memory.client().reservation() for _ in range(clients)]
    for size in range(0, 160 * MIB, MIB // 4):
        for each in reservations:
            each.grow(size)
    shared = 160 * MIB * 7 // 8
    assert memory.used <= shared
    assert memory.client().reservation().grow((shared - memory.used) // 2)


def test_small_clients_use_the_reserve() -> None:
    memory = RequestMemory(16 * MIB)
    kept = [memory.client().reservation() for _ in range(1000)]
    while any([each.grow(each.nbytes + MIB // 16) for each in kept]):
        pass
    assert memory.client().reservation().grow(SMALL) or memory.used > 16 * MIB - SMALL
    assert memory.used <= 16 * MIB


def test_without_a_limit_everything_is_reserved_and_counted() -> None:
    memory = RequestMemory()
    reservations = held(memory, 2**50)
    assert memory.used == 2**50
    reservations.clear()
    assert memory.used == 0


def test_a_refusal_names_the_usage_and_the_option() -> None:
    memory = RequestMemory(MIB)
    with pytest.raises(RequestMemoryFull) as refused:
        memory.client().reservation().require(MIB)
    assert isinstance(refused.value, ResourceExhausted)
    assert "needs 1048576 more bytes, and 0 of 1048576 bytes" in refused.value.message
    assert "--request-memory (request_memory in server.yaml)" in refused.value.message
    assert refused.value.retry_after == "1"


def test_the_metrics_report_use_limit_and_refusals() -> None:
    memory = RequestMemory(MIB)
    kept = held(memory, 1000)
    memory.client().reservation().grow(MIB)
    values = {family.name: family.metrics[0].value for family in memory.metrics()}
    assert values == {
        "nv_request_memory_bytes": 1000.0,
        "nv_request_memory_limit_bytes": float(MIB),
        "nv_request_memory_refusals": 1.0,
    }
    kept.clear()


def test_concurrent_threads_count_every_byte() -> None:
    memory = RequestMemory(2**40)

    def work() -> None:
        client = memory.client()
        for _ in range(2000):
            client.reservation().grow(1000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.used == 0


def test_a_reservation_in_a_reference_cycle_is_released_by_the_collector() -> None:
    memory = RequestMemory(MIB)
    cycle: list[object] = held(memory, 1000)
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert memory.used == 0


def test_the_default_is_a_quarter_of_the_memory_limit_shared_by_processes() -> None:
    assert request_memory(0).limit == memory_limit() // 4
    assert request_memory(8 * MIB).limit == 8 * MIB
    assert request_memory(8 * MIB, 4).limit == 2 * MIB


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": f"{64 * MIB}"}, 64 * MIB),
        ("0::/a/b", {"a/b/memory.max": f"{32 * MIB}", "a/memory.max": f"{64 * MIB}"}, 32 * MIB),
        ("0::/", {"memory.max": f"{16 * MIB}\n"}, 16 * MIB),
        ("3:cpu:/x\n4:memory:/x\n0::/", {"memory/x/memory.limit_in_bytes": f"{8 * MIB}"}, 8 * MIB),
        ("4:memory:/not/there", {"memory/memory.limit_in_bytes": f"{8 * MIB}"}, 8 * MIB),
        ("4:memory:/", {"memory/memory.limit_in_bytes": f"{2**63 - 4096}"}, PHYSICAL),
        ("0::/", {}, PHYSICAL),
    ],
)
def test_the_memory_limit_is_the_minimum_of_all_limits(
    tmp_path: Path, groups: str, files: dict[str, str], limit: int
) -> None:
    write(tmp_path / "proc/self/cgroup", groups)
    for name, text in files.items():
        write(tmp_path / "sys/fs/cgroup" / name, text)
    assert memory_limit(tmp_path) == limit


def test_without_control_groups_physical_memory_is_the_limit(tmp_path: Path) -> None:
    assert memory_limit(tmp_path) == PHYSICAL


def test_the_metrics_of_several_processes_have_their_names() -> None:
    families = memory_metrics({"0": [1, 2, 3], "1": [4, 5, 6]})
    used = families[0].metrics
    assert [(metric.labels, metric.value) for metric in used] == [
        ({"process": "0"}, 1.0),
        ({"process": "1"}, 4.0),
    ]
    assert memory_metrics({}) == []
