"""Runs the code blocks of a page like a reader: in order, in one folder, with the page's commands.

- `sh` blocks run in a shell. A block that ends with `tritonpy serve` stays up until the next one or the page's end.
- A block after a paragraph that ends with "`FILE`:" is written to that file.
- Other `python` blocks are run.
- A `json` or `text` block is the output of the block before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n\Z")
PORTS = (8000, 8001, 8002)
TIMEOUT_S = 600


@dataclass(frozen=True)
class Block:
    """A code block: language, text, and the file that it is written to."""

    language: str
    code: str
    file: str = ""


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page, in order."""
    found = []
    for match in BLOCK.finditer(page):
        file = FILE.search(page, 0, match.start())
        found.append(Block(match[1], match[2], file[1] if file else ""))
    return found


@dataclass
class Checkout:
    """A copy of the project that runs the commands of pages; `ports` replace ports 8000 to 8002."""

    folder: Path
    ports: dict[int, int]
    printed: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a reader's shell, without those of the tests."""
        own = ("PYTHON", "TRITONPY", "VIRTUAL", "PIP_REQUIRE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        path = f"{self.folder / '.venv' / 'bin'}:{kept['PATH']}"
        return {**kept, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}

    def moved(self, text: str) -> str:
        """Return `text` with the ports of this checkout."""
        for ours, theirs in self.ports.items():
            text = re.sub(rf"\b{ours}\b", str(theirs), text)
        return text

    def shell(self, command: str) -> str:
        """Run a command and return its output; it must succeed."""
        done = subprocess.run(
            ["sh", "-ec", self.moved(command)],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def write(self, name: str, text: str) -> None:
        """Write a file of a page."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.moved(text), encoding="utf-8")

    @contextlib.contextmanager
    def serving(self, command: str) -> Iterator[None]:
        """Run a serving command until it is ready; it must exit cleanly on SIGTERM."""
        command = self._on_our_ports(command)
        log = self.folder / f"serve-{self.ports[8000]}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["sh", "-ec", f"exec {command}"],
                cwd=self.folder, env=self.environment, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
            try:
                _until(process, lambda: "ready: " in log.read_text(encoding="utf-8"), log)
                yield
                process.terminate()
                assert process.wait(60) == 0, log.read_text(encoding="utf-8")
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.wait()

    def _on_our_ports(self, command: str) -> str:
        """Return `command` with the ports of this checkout.

        Flags set the ports that neither the command nor its file names.
        """
        file = re.search(r"--config (\S+)", command)
        named = (self.folder / file[1]).read_text(encoding="utf-8") if file else ""
        names = ("http", "grpc", "metrics")
        flags = [
            f"--{name}-port={port}"
            for name, port in zip(names, PORTS, strict=True)
            if f"--{name}-port" not in command and str(self.ports[port]) not in named
        ]
        return self.moved(" ".join([command.strip(), *flags]))

    def run_page(self, page: str) -> None:
        """Run every block of a page; each must succeed and print the output that the page shows."""
        printed: str | None = None
        with contextlib.ExitStack() as server:
            for block in blocks(page):
                if block.file:
                    self.write(block.file, block.code)
                elif block.language == "sh":
                    *before, last = block.code.strip().split(" && ")
                    if "tritonpy serve " in last:
                        server.close()
                        self.shell(_this_python(" && ".join(before)) or "true")
                        server.enter_context(self.serving(last))
                    else:
                        printed = self.shell(_this_python(block.code))
                elif block.language == "python":
                    self.write("snippet.py", block.code)
                    printed = self.shell("python snippet.py")
                elif block.language in {"json", "text"}:
                    assert printed is not None, f"nothing was printed before:\n{block.code}"
                    assert_prints(printed, block)
                else:
                    pytest.fail(f"this block has no known kind:\n{block.code}")


def assert_prints(printed: str, block: Block) -> None:
    """Assert that the output equals that of the page: the last line as JSON, or the text."""
    if block.language == "json":
        assert json.loads(printed.strip().splitlines()[-1]) == json.loads(block.code)
    else:
        assert printed.strip() == block.code.strip()


def _this_python(command: str) -> str:
    """Return `command` with the interpreter of the tests instead of `python3`."""
    return re.sub(r"^python3 -m venv", f"{sys.executable} -m venv", command)


def _until(process: subprocess.Popen[bytes], condition: Callable[[], bool], log: Path) -> None:
    while not condition():
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(0.05)
            pytest.fail(
                f"it ended with {status} and printed:\n{log.read_text(encoding='utf-8')[-4000:]}"
            )
