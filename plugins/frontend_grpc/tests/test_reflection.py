from __future__ import annotations

import asyncio

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from tritonpy_protos import METHODS, SERVICE

from .fake_engine import FakeEngine, run, serving


def test_reflection_lists_every_service_and_method():
    def ask(address):
        with grpc.insecure_channel(address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            pool = DescriptorPool(database)
            return {
                name: list(pool.FindServiceByName(name).methods_by_name)
                for name in database.get_services()
            }

    async def scenario():
        async with serving(FakeEngine()) as frontend:
            found = await asyncio.to_thread(ask, frontend.address())
        assert found[SERVICE] == [method.name for method in METHODS]
        assert found["grpc.health.v1.Health"][:1] == ["Check"]
        assert found["grpc.reflection.v1alpha.ServerReflection"] == ["ServerReflectionInfo"]

    run(scenario)
