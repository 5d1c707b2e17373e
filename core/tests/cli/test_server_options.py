from __future__ import annotations

import msgspec

from tritonpy.cli.plugin_options import SECTIONS
from tritonpy.cli.server_options import describe_server_options
from tritonpy.config.server import ServerConfig


def test_every_key_of_the_server_is_listed():
    lines = describe_server_options().splitlines()
    for field in msgspec.structs.fields(ServerConfig):
        listed = [line for line in lines if line == f"  {field.name}" or line.startswith(f"  {field.name}: ")]
        assert len(listed) == (field.name not in SECTIONS), field.name


def test_a_section_lists_its_keys_with_type_default_and_meaning():
    text = describe_server_options()
    assert (
        "  rate_limit\n"
        '    mode: text; default "off"\n'
        "        off: every idle instance may run; execution_count: an instance needs its resources; or the name of another plugin.\n"
    ) in text
    assert (
        '\n    pinned_memory_pool_byte_size: a size such as 67108864 or "64MiB", at least 0; default 268435456\n'
        in text
    )
    assert '\n  host: text, of length 1 or more; default "127.0.0.1"\n' in text
