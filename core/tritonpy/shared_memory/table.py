"""Which regions are registered, and who uses them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from tritonpy.errors import AlreadyExists, InvalidArgument, NotFound, Unsupported
from tritonpy.shared_memory.memory import Memory
from tritonpy.shared_memory.object_key import check_key
from tritonpy.types import CudaRegion, RegionKind, RegionSlice, SystemRegion

_SIZE_MAX = 2**64 - 1
_NAMES = {RegionKind.SYSTEM: "system", RegionKind.CUDA: "CUDA"}
Described = SystemRegion | CudaRegion


class Region:
    """One registered region; `users` are the requests in flight that use it, and with the last of them it goes where it `leaves`."""

    __slots__ = ("described", "leaves", "memory", "users")

    def __init__(self, described: Described, memory: Memory) -> None:
        self.described = described
        self.memory = memory
        self.users = 0
        self.leaves = False

    @property
    def kind(self) -> RegionKind:
        """Where its memory is."""
        return RegionKind.SYSTEM if isinstance(self.described, SystemRegion) else RegionKind.CUDA


class Regions:
    """The regions by name. May be used from any thread; to register one opens and maps memory, the rest is short.

    An unregistered region that requests still use stays, as in Triton: it is listed, can be used and keeps its name until the last of them has
    its final answer.
    """

    def __init__(self, allowed: bool) -> None:
        """Refuse every registration where not `allowed`."""
        self._allowed = allowed
        self._lock = threading.Lock()
        self._regions: dict[str, Region] = {}

    def check(self, kind: RegionKind, name: str) -> None:
        """Raise what a registration is refused with, whatever memory it is for: Unsupported, or InvalidArgument for no name."""
        self._require_allowed()
        if not name:
            raise InvalidArgument(f"'region name' is necessary to register {kind} shared memory region")

    def register_system(self, region: SystemRegion) -> None:
        """Map a shared-memory object. Raises Unsupported, InvalidArgument, Internal, AlreadyExists."""
        from tritonpy.shared_memory.system_memory import SystemMemory

        self._require_allowed()
        check_key(region.name, region.key)
        self._add(region, partial(SystemMemory, region))

    def register_cuda(self, region: CudaRegion, handle: bytes) -> None:
        """Open memory of a GPU by its IPC handle. Raises Unsupported, InvalidArgument, AlreadyExists."""
        from tritonpy.shared_memory.cuda_memory import open_cuda

        self._require_allowed()
        self._add(region, partial(open_cuda, region, handle))

    def unregister(self, kind: RegionKind, name: str = "") -> None:
        """Forget a region, or with no name all of that kind; one that is not there is no error. Raises Unsupported."""
        self._require_allowed()
        with self._lock:
            for region in [self._regions.get(name)] if name else list(self._regions.values()):
                if region is not None and region.kind == kind:
                    region.leaves = True
                    self._let_go(region)

    def status(self, kind: RegionKind, name: str = "") -> Sequence[Described]:
        """Return one region, or with no name all of that kind in the order of their names. Raises NotFound."""
        with self._lock:
            if not name:
                found = [region.described for region in self._regions.values() if region.kind == kind]
                return sorted(found, key=lambda described: described.name)
            region = self._regions.get(name)
        if region is None:
            raise NotFound(f"Unable to find {kind} shared memory region: '{name}'")
        if region.kind != kind:
            raise NotFound(
                f"The region named '{name}' is registered as {_NAMES[region.kind]} shared memory, not {_NAMES[kind]} shared memory"
            )
        return [region.described]

    def hold(self, wanted: RegionSlice) -> Region:
        """Return the region that `wanted` is a part of, with one user more. Raises NotFound, InvalidArgument for a part that it does not have."""
        with self._lock:
            region = self._regions.get(wanted.name)
            if region is None:
                raise NotFound(f"Unable to find shared memory region: '{wanted.name}'")
            _check_part(wanted, region.described.byte_size)
            region.users += 1
        return region

    def release(self, held: list[Region]) -> None:
        """Take one user from each; `held` is empty afterwards, so that twice does no harm."""
        with self._lock:
            while held:
                region = held.pop()
                region.users -= 1
                self._let_go(region)

    def _let_go(self, region: Region) -> None:
        if region.leaves and not region.users:
            del self._regions[region.described.name]

    def _add(self, described: Described, make: Callable[[], Memory]) -> None:
        with self._lock:
            self._require_free(described.name)
        region = Region(described, make())
        with self._lock:
            self._require_free(described.name)  # somebody else may have been faster
            self._regions[described.name] = region

    def _require_free(self, name: str) -> None:
        if name in self._regions:
            raise AlreadyExists(f"shared memory region '{name}' already in manager")

    def _require_allowed(self) -> None:
        if not self._allowed:
            raise Unsupported(
                "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
            )


def _check_part(wanted: RegionSlice, available: int) -> None:
    if wanted.offset >= available:
        raise InvalidArgument(f"Invalid offset for shared memory region: '{wanted.name}'")
    if wanted.byte_size > _SIZE_MAX - wanted.offset:
        raise InvalidArgument(
            f"Integer overflow detected: byte_size ({wanted.byte_size}) + offset ({wanted.offset}) exceeds maximum value "
            f"({_SIZE_MAX}) for region '{wanted.name}'"
        )
    if wanted.offset + wanted.byte_size > available:
        raise InvalidArgument(f"Invalid offset + byte size for shared memory region: '{wanted.name}'")
