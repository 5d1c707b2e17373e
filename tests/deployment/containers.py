"""Images built with buildah, and containers that run without a container engine.

A container is a process in namespaces of its own. Its root is the image's filesystem, mounted
read-only, with a /tmp in memory and a /dev/shm of a given size, and it has the image's user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".test-venv" / "images"
BASE = "localhost/tritonpy-test-base"
_PACKAGES = "python3,python3-venv,ca-certificates"
_MIRROR = "http://deb.debian.org/debian"
_RUN = """
set -e
mount --bind "$ROOTFS" "$ROOTFS"
for name in null zero random urandom; do
  touch "$ROOTFS/dev/$name"; mount --bind /dev/$name "$ROOTFS/dev/$name"
done
mkdir -p "$ROOTFS$MOUNT" "$ROOTFS/dev/shm"
mount --bind "$MODELS" "$ROOTFS$MOUNT"
mount -o remount,bind,ro "$ROOTFS$MOUNT"
mount -t tmpfs -o mode=1777 tmpfs "$ROOTFS/tmp"
mount -t tmpfs -o mode=1777,size=$SHM tmpfs "$ROOTFS/dev/shm"
mount -t proc proc "$ROOTFS/proc"
mount -o remount,bind,ro "$ROOTFS"
exec chroot --userspec="$USERSPEC" "$ROOTFS" /usr/bin/env -i $VARIABLES "$@"
"""


def require_tools() -> None:
    """Skip the test if images cannot be built and run here."""
    for tool in ("buildah", "mmdebstrap", "unshare", "chroot"):
        if shutil.which(tool) is None:
            pytest.skip("needs buildah, mmdebstrap and util-linux: apt install buildah mmdebstrap")
    probe = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if os.geteuid() != 0 or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the right to mount filesystems in a namespace")


def buildah(*arguments: str, timeout_s: float = 600) -> str:
    """Run buildah and return its output."""
    done = subprocess.run(
        ["buildah", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.strip()


def make_base() -> str:
    """Return the name of a base image of Debian with Python, which is made once."""
    if not buildah("images", "--quiet", "--filter", f"reference={BASE}"):
        CACHE.mkdir(parents=True, exist_ok=True)
        archive = CACHE / "base.tar"
        if not archive.exists():
            command = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={_PACKAGES}"]
            subprocess.run(
                [*command, "bookworm", str(archive), _MIRROR], check=True, capture_output=True
            )
        commit_root(archive, BASE)
    return BASE


def commit_root(archive: Path, name: str) -> None:
    """Make an image of a root filesystem."""
    container = buildah("from", "scratch")
    try:
        buildah("add", "--quiet", container, str(archive), "/")
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)


def build(target: str, **arguments: str) -> str:
    """Build a target of the Dockerfile and return the name of the image."""
    name = f"localhost/tritonpy-test:{target}"
    given = {"BASE": make_base(), **arguments}
    # The certificates and packages of this machine, for pip in the build.
    volumes = [each for each in ("/etc/ssl/certs", "/opt/wheels") if Path(each).is_dir()]
    buildah(
        "bud", "--format", "docker", "--network", "host",
        *(part for each in volumes for part in ("--volume", f"{each}:{each}:ro")),
        *(part for key, value in given.items() for part in ("--build-arg", f"{key}={value}")),
        "--target", target, "--tag", name,
        "--file", str(ROOT / "deploy" / "docker" / "Dockerfile"), str(ROOT),
    )  # fmt: skip
    return name


def configuration(image: str) -> dict[str, Any]:
    """Return the configuration of an image: user, entry point, environment, health check."""
    found = json.loads(buildah("inspect", "--type", "image", image))
    return dict(found["Docker"]["config"])


@contextlib.contextmanager
def root_filesystem(image: str) -> Iterator[Path]:
    """Mount the filesystem of an image."""
    container = buildah("from", image)
    try:
        yield Path(buildah("mount", container))
    finally:
        buildah("umount", container)
        buildah("rm", container)


class Container:
    """A running container. `pid` is its first process, as seen from outside."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        """What the container has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The first process of the container."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(path.read_text(encoding="utf-8").split()[0])

    def wait_for(self, text: str, timeout_s: float = 60) -> None:
        """Wait until the container has written `text`."""
        deadline = time.monotonic() + timeout_s
        while text not in self.log:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)

    def stop(self) -> int:
        """Send SIGTERM and return the exit status."""
        os.kill(self.pid, 15)
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def running(
    image: str,
    command: Sequence[str],
    *,
    models: Path,
    log: Path,
    shm_bytes: int = 64 * 1024 * 1024,
    variables: Mapping[str, str] | None = None,
    mount: str = "/models",
) -> Iterator[Container]:
    """Run a command in a container, with `models` at the path `mount`; kill it at the end."""
    found = configuration(image)
    with root_filesystem(image) as root, log.open("w", encoding="utf-8") as output:
        # The mount point must exist before the root is mounted read-only.
        environment = {
            "PATH": os.environ["PATH"],
            "ROOTFS": str(root),
            "MODELS": str(models),
            "MOUNT": mount,
            "SHM": str(shm_bytes),
            "USERSPEC": found["User"],
            "VARIABLES": " ".join(
                [*found["Env"], *(f"{key}={value}" for key, value in (variables or {}).items())]
            ),
        }
        process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child",
             "sh", "-c", _RUN, "sh", *command],
            env=environment, stdout=output, stderr=output, text=True,
        )  # fmt: skip
        try:
            yield Container(process, log)
        finally:
            process.kill()
            process.wait()
