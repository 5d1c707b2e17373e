"""The contract of devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tritonpy import InvalidArgument, ModelMemory, Unavailable
from tritonpy.config import DeviceSettings
from tritonpy.execution import Device, DeviceMonitor, DeviceReading, DeviceUnavailable
from tritonpy.frontend import CudaRegion
from tritonpy.metrics import SERVER_METRICS
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy
from tritonpy_testing.contracts.plugin import PluginContract

REFUSED = "failed to register shared memory region"
NO_GPU = 1 << 20  # more than a machine has


class DeviceContract(PluginContract):
    """The contract of `Device`.

    Set `plugin_class`, and `settings` for values of the section `devices`. The contract holds with
    and without GPUs. Simulate them in a fixture to test both.
    """

    interface = Device
    hook = "tritonpy_devices"
    settings = DeviceSettings(
        pinned_memory_pool_byte_size=1 << 16, cuda_memory_pool_byte_size={"0": 1 << 16}
    )

    @contextmanager
    def opened(self) -> Iterator[Device]:
        """Make a device and close it at the end."""
        device = self.plugin_class(self.settings)
        assert isinstance(device, Device)
        try:
            yield device
        finally:
            device.close()

    def test_its_gpus_are_visible_and_in_order(self) -> None:
        with self.opened() as device:
            visible = list(device.visible())
            assert visible == list(range(len(visible))), "GPUs count from 0"
            assert device.ids == list(device.supported())
            assert device.ids == sorted(set(device.ids) & set(visible)), (
                "a supported GPU is visible"
            )
            assert device.settings == self.settings

    def test_a_worker_uses_the_gpus_that_it_is_given(self) -> None:
        device = self.plugin_class(self.settings, [])
        assert device.ids == []
        device.close()

    def test_memory_in_use_is_part_of_the_total_or_has_a_reason(self) -> None:
        with self.opened() as device:
            for gpu in [*device.visible(), NO_GPU]:
                try:
                    used, total = device.memory(gpu)
                except DeviceUnavailable as error:
                    assert str(error), "the text of DeviceUnavailable is the reason"
                else:
                    assert gpu != NO_GPU, "a GPU that does not exist has no memory"
                    assert 0 <= used <= total

    def test_an_unknown_process_uses_no_gpu(self) -> None:
        with self.opened() as device:
            assert dict(device.process_memory(2**22 + 1)) == {}

    def test_a_monitor_reads_every_gpu_by_its_uuid(self) -> None:
        with self.opened() as device:
            try:
                monitor = device.monitor()
            except DeviceUnavailable as error:
                assert str(error), "the text of DeviceUnavailable is the reason"
                return
            if monitor is None:
                return
            assert isinstance(monitor, DeviceMonitor)
            with monitor:
                read = monitor.read()
                assert list(read) == list(monitor.uuids)
                assert all(isinstance(reading, DeviceReading) for reading in read.values())

    def test_model_memory_is_free_at_first_and_belongs_to_existing_gpus(self) -> None:
        with self.opened() as device:
            memory = device.model_memory(ModelOptimizationPolicy())
            assert isinstance(memory, ModelMemory)
            assert device.ids or not memory.has_pools, "only GPUs have pools"
            assert all(size == 0 for _, _, size in memory.held()), "a new model holds no memory"
            _check_refused(memory)

    def test_arrays_for_inputs_and_outputs_have_the_requested_shape(self) -> None:
        with self.opened() as device:
            memory = device.model_memory(ModelOptimizationPolicy())
            for allocate in (memory.pinned_input, memory.pinned_output):
                if allocate is not None:
                    array = allocate("IN", "INT32", (2, 3))
                    array[:] = 7
                    assert array.shape == (2, 3)
                    assert array.dtype == np.int32
                    assert array.flags.c_contiguous

    def test_a_model_may_do_without_pinned_memory(self) -> None:
        policy = ModelOptimizationPolicy()
        policy.input_pinned_memory.enable = policy.output_pinned_memory.enable = False
        with self.opened() as device:
            memory = device.model_memory(policy)
            assert memory.pinned_input is None
            assert memory.pinned_output is None

    def test_a_handle_that_is_none_is_refused_as_triton_refuses_it(self) -> None:
        with self.opened() as device:
            for handle in (b"", b"\xff" * 64):
                try:
                    device.open_region(CudaRegion("region", NO_GPU, 8), handle)
                except InvalidArgument as error:
                    assert error.message.startswith(REFUSED), error.message
                else:
                    raise AssertionError(
                        "open_region() must raise InvalidArgument for a wrong handle"
                    )

    def test_metrics_are_those_of_triton(self) -> None:
        with self.opened() as device:
            families = {family.name: family for family in device.metrics()}
            assert families.keys() <= SERVER_METRICS
            total = families["nv_pinned_memory_pool_total_bytes"].metrics
            assert [each.value for each in total] == [self.settings.pinned_memory_pool_byte_size]
            assert [
                each.value for each in families["nv_pinned_memory_pool_used_bytes"].metrics
            ] == [0]


def _check_refused(memory: ModelMemory) -> None:
    try:
        memory.on_device(NO_GPU, 8)
    except Unavailable:
        return
    raise AssertionError("on_device() must raise Unavailable for a GPU that does not exist")
