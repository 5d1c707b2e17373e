"""Reports have the encodings that load balancers read."""

from __future__ import annotations

import json

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tritonpy_load_reports import LoadReport

REPORT = LoadReport(0.5, 0.25, 1.125, 120.5, 2.0, {"digits": 1.5, "ü": 0.25})


def orca_message():
    """Return the class of xds.data.orca.v3.OrcaLoadReport, made from its field numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="orca.proto", package="t", syntax="proto3")
    message = file.message_type.add(name="Report")
    for name, number in (
        ("cpu_utilization", 1), ("mem_utilization", 2), ("rps_fractional", 6), ("eps", 7),
        ("application_utilization", 9),
    ):  # fmt: skip
        message.field.add(name=name, number=number, type=1, label=1)
    entry = message.nested_type.add(name="NamedMetricsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=1, label=1)
    message.field.add(
        name="named_metrics", number=8, type=11, label=3, type_name=".t.Report.NamedMetricsEntry"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Report"))


def test_protobuf_reads_the_message():
    found = orca_message().FromString(REPORT.encode())
    assert (found.cpu_utilization, found.mem_utilization) == (0.5, 0.25)
    assert (found.rps_fractional, found.eps, found.application_utilization) == (120.5, 2.0, 1.125)
    assert dict(found.named_metrics) == {"queue_ms.digits": 1.5, "queue_ms.ü": 0.25}
    assert LoadReport().encode() == b""


def test_the_header_is_json():
    kind, text = REPORT.http_value().split(b" ", 1)
    assert kind == b"JSON"
    assert json.loads(text) == {
        "cpu_utilization": 0.5, "mem_utilization": 0.25, "application_utilization": 1.125,
        "rps_fractional": 120.5, "eps": 2.0,
        "named_metrics": {"queue_ms.digits": 1.5, "queue_ms.ü": 0.25},
    }  # fmt: skip
