from __future__ import annotations

import asyncio
import socket
from pathlib import Path

FOLDER = Path(__file__).parent.parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_example_echoes():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    names = {"__name__": "example"}
    exec(README.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - our own page

    async def scenario():
        stopping = asyncio.Event()
        serving = asyncio.create_task(names["serve"](port, stopping))
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        await writer.wait_closed()
        stopping.set()
        await serving

    asyncio.run(scenario())


def test_every_module_is_in_the_table():
    modules = {path.stem for path in (FOLDER / "tritonpy_network").glob("[a-z]*.py")}
    assert {name for name in modules if f"| `{name}`" not in README} == set()
