from __future__ import annotations

import json

from tritonpy import install_command
from tritonpy.cli.plugins_command import as_json, as_table
from tritonpy.plugins import PluginInfo

PLUGINS = [
    PluginInfo("core", "tritonpy", "0.1.0", {"tritonpy_repositories": ["file"]}),
    PluginInfo("toy", "a-toy", "12", {"tritonpy_backends": ["x", "y"], "tritonpy_server_started": []}),
    PluginInfo("idle", "idle", "1", {}),
]


def test_the_table_lists_the_names_of_each_plugin():
    assert as_table(PLUGINS).splitlines() == [
        "DISTRIBUTION  VERSION  PROVIDES",
        "tritonpy      0.1.0    repositories: file",
        "a-toy         12       backends: x, y",
        "                       server started",
        "idle          1        nothing",
    ]


def test_without_plugins_there_is_a_hint():
    assert install_command("tritonpy-backend-onnx") in as_table([])


def test_the_json_form_has_every_hook():
    found = json.loads(as_json(PLUGINS))
    assert found[1] == {
        "name": "toy",
        "distribution": "a-toy",
        "version": "12",
        "provides": {"tritonpy_backends": ["x", "y"], "tritonpy_server_started": []},
    }
