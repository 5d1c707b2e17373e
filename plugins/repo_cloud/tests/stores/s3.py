"""Two S3 servers: moto's, which accepts all clients, and s3rver, which checks a key."""

from __future__ import annotations

import sys
from pathlib import Path

import boto3
from botocore.config import Config

from tritonpy_testing import free_port

from .npm import program
from .process import Running


class S3Server:
    """A store server with operations on buckets and files."""

    scheme = "s3"
    key = secret = ""

    def __init__(self, process: Running) -> None:
        self.process = process
        self.port = process.port
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"}, request_checksum_calculation="when_required"
            ),
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with credentials for the server."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def url(self, bucket: str, port: int = 0) -> str:
        return f"s3://http://127.0.0.1:{port or self.port}/{bucket}"

    def options(self, port: int = 0) -> dict[str, object]:
        return {}

    def make(self, bucket: str) -> None:
        self.client.create_bucket(Bucket=bucket)

    def put(self, bucket: str, path: str, content: bytes) -> None:
        self.client.put_object(Bucket=bucket, Key=path, Body=content)

    def delete(self, bucket: str, path: str) -> None:
        self.client.delete_object(Bucket=bucket, Key=path)

    def paths(self, bucket: str) -> list[str]:
        return [
            each["Key"] for each in self.client.list_objects_v2(Bucket=bucket).get("Contents", [])
        ]

    def drop(self, bucket: str) -> None:
        self.client.delete_bucket(Bucket=bucket)

    def end(self) -> None:
        self.client.close()
        self.process.end()


class Moto(S3Server):
    """The server of the package moto."""

    key, secret = "AKIATESTTESTTEST", "secret"

    @classmethod
    def start(cls, folder: Path) -> Moto:
        port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        return cls(Running(command, port, folder / "moto.log"))


class S3rver(S3Server):
    """The npm package s3rver."""

    key = secret = "S3RVER"

    @classmethod
    def start(cls, folder: Path) -> S3rver:
        port = free_port()
        command = [
            program("s3rver"),
            "-d",
            str(folder / "s3rver"),
            "-a",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        return cls(Running([*command, "--no-vhost-buckets"], port, folder / "s3rver.log"))
