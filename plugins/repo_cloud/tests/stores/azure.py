"""Azure Storage emulated by Azurite, which checks keys."""

from __future__ import annotations

from pathlib import Path

from azure.storage.blob import BlobServiceClient

from tritonpy_testing import free_port

from .npm import program
from .process import Running

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Azurite:
    """An Azurite server with operations on containers and files."""

    scheme = "as"

    def __init__(self, process: Running) -> None:
        self.process = process
        self.port = process.port
        self.client = BlobServiceClient(f"http://127.0.0.1:{self.port}/{ACCOUNT}", credential=KEY)

    @classmethod
    def start(cls, folder: Path) -> Azurite:
        port = free_port()
        command = [
            program("azurite-blob"),
            "--inMemoryPersistence",
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            str(port),
        ]
        return cls(
            Running(
                [*command, "--silent", "--skipApiVersionCheck", "--disableTelemetry"],
                port,
                folder / "azurite.log",
            )
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with credentials for the server."""
        return {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}

    def url(self, bucket: str, port: int = 0) -> str:
        return f"as://{ACCOUNT}/{bucket}"

    def options(self, port: int = 0) -> dict[str, object]:
        return {"endpoint": f"http://127.0.0.1:{port or self.port}/{ACCOUNT}"}

    def make(self, bucket: str) -> None:
        self.client.create_container(bucket)

    def put(self, bucket: str, path: str, content: bytes) -> None:
        self.client.get_blob_client(bucket, path).upload_blob(content, overwrite=True)

    def delete(self, bucket: str, path: str) -> None:
        self.client.get_blob_client(bucket, path).delete_blob()

    def paths(self, bucket: str) -> list[str]:
        return list(self.client.get_container_client(bucket).list_blob_names())

    def drop(self, bucket: str) -> None:
        self.client.delete_container(bucket)

    def end(self) -> None:
        self.client.close()
        self.process.end()
