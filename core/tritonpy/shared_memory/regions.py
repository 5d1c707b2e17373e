"""The registered regions and their users."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from tritonpy.api.device import Device, NoDevice
from tritonpy.shared_memory.object_key import check_key
from tritonpy_types import CudaRegion, RegionKind, RegionMemory, RegionSlice, SystemRegion
from tritonpy_types.errors import AlreadyExists, InvalidArgument, NotFound, Unsupported

_SIZE_MAX = 2**64 - 1
_NAMES = {RegionKind.SYSTEM: "system", RegionKind.CUDA: "CUDA"}
RegionSpec = SystemRegion | CudaRegion


class Region:
    """One registered region, used by `users` requests in flight.

    If it is `unregistered`, it is removed with its last user.
    """

    __slots__ = ("memory", "spec", "unregistered", "users")

    def __init__(self, spec: RegionSpec, memory: RegionMemory) -> None:
        self.spec = spec
        self.memory = memory
        self.users = 0
        self.unregistered = False

    @property
    def kind(self) -> RegionKind:
        """The kind of its memory."""
        return RegionKind.SYSTEM if isinstance(self.spec, SystemRegion) else RegionKind.CUDA


class Regions:
    """The regions by name.

    Any thread may call any method. A registration opens and maps memory; all other methods are
    short. As in Triton, an unregistered region that requests still use remains: it is listed,
    usable and keeps its name until the last of them has its final response.
    """

    def __init__(self, allowed: bool, gpus: Device | None = None) -> None:
        """Create an empty table that refuses every registration unless `allowed`.

        `gpus` opens regions in GPU memory.
        """
        self._allowed = allowed
        self._gpus = gpus or NoDevice()
        self._lock = threading.Lock()
        self._regions: dict[str, Region] = {}

    def check(self, kind: RegionKind, name: str) -> None:
        """Raise if no region can be registered as `name`.

        Raises Unsupported if shared memory is off, InvalidArgument for an empty name.
        """
        self._require_allowed()
        if not name:
            raise InvalidArgument(
                f"'region name' is necessary to register {kind} shared memory region"
            )

    def register_system(self, region: SystemRegion) -> None:
        """Map a shared-memory object.

        Raises Unsupported, InvalidArgument, Internal, AlreadyExists.
        """
        from tritonpy.shared_memory.system_memory import SystemMemory

        self._require_allowed()
        check_key(region.name, region.key)
        self._add(region, partial(SystemMemory, region))

    def register_cuda(self, region: CudaRegion, handle: bytes) -> None:
        """Open GPU memory by its IPC handle. Raises Unsupported, InvalidArgument, AlreadyExists."""
        self._require_allowed()
        self._add(region, partial(self._gpus.open_region, region, handle))

    def unregister(self, kind: RegionKind, name: str = "") -> None:
        """Unregister a region, or all regions of that kind if `name` is empty.

        An unknown region is no error. Raises Unsupported.
        """
        self._require_allowed()
        with self._lock:
            for region in [self._regions.get(name)] if name else list(self._regions.values()):
                if region is not None and region.kind == kind:
                    region.unregistered = True
                    self._remove_if_unused(region)

    def status(self, kind: RegionKind, name: str = "") -> Sequence[RegionSpec]:
        """Return one region, or all regions of that kind sorted by name. Raises NotFound."""
        with self._lock:
            if not name:
                found = [region.spec for region in self._regions.values() if region.kind == kind]
                return sorted(found, key=lambda spec: spec.name)
            region = self._regions.get(name)
        if region is None:
            raise NotFound(f"Unable to find {kind} shared memory region: '{name}'")
        if region.kind != kind:
            raise NotFound(
                f"The region named '{name}' is registered as {_NAMES[region.kind]} shared "
                f"memory, not {_NAMES[kind]} shared memory"
            )
        return [region.spec]

    def hold(self, part: RegionSlice) -> Region:
        """Return the region that contains `part`, and count one more user.

        Raises NotFound, and InvalidArgument if the region does not contain the part.
        """
        with self._lock:
            region = self._regions.get(part.name)
            if region is None:
                raise NotFound(f"Unable to find shared memory region: '{part.name}'")
            _check_part(part, region.spec.byte_size)
            region.users += 1
        return region

    def release(self, held: list[Region]) -> None:
        """Remove one user from each region and clear `held`, so that a second call does nothing."""
        with self._lock:
            while held:
                region = held.pop()
                region.users -= 1
                self._remove_if_unused(region)

    def _remove_if_unused(self, region: Region) -> None:
        if region.unregistered and not region.users:
            del self._regions[region.spec.name]

    def _add(self, spec: RegionSpec, make: Callable[[], RegionMemory]) -> None:
        with self._lock:
            self._require_free(spec.name)
        region = Region(spec, make())
        with self._lock:
            self._require_free(spec.name)  # another thread may have been faster
            self._regions[spec.name] = region

    def _require_free(self, name: str) -> None:
        if name in self._regions:
            raise AlreadyExists(f"shared memory region '{name}' already in manager")

    def _require_allowed(self) -> None:
        if not self._allowed:
            raise Unsupported(
                "Client shared memory is disabled. Start the server with "
                "'--allow-client-shm=true' to enable."
            )


def _check_part(part: RegionSlice, available: int) -> None:
    if part.offset >= available:
        raise InvalidArgument(f"Invalid offset for shared memory region: '{part.name}'")
    if part.byte_size > _SIZE_MAX - part.offset:
        raise InvalidArgument(
            f"Integer overflow detected: byte_size ({part.byte_size}) + offset ({part.offset}) "
            "exceeds maximum value "
            f"({_SIZE_MAX}) for region '{part.name}'"
        )
    if part.offset + part.byte_size > available:
        raise InvalidArgument(f"Invalid offset + byte size for shared memory region: '{part.name}'")
