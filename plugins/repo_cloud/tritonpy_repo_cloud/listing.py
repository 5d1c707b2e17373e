"""A model as a repository in a cloud lists it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tritonpy import InvalidArgument, ModelListing
from tritonpy_repo_cloud.remote_file import RemoteFile


@dataclass(frozen=True, slots=True)
class CloudListing(ModelListing):
    """`remote` are the same files as the store knows them, with paths relative to the repository."""

    remote: Sequence[RemoteFile] = ()


def listing_of(name: str, remote: Iterable[RemoteFile], marker: str) -> CloudListing:
    """Return the listing of a model; its marker file is none of its files."""
    kept = tuple(file for file in remote if file.path != f"{name}/{marker}")
    files = {file.path[len(name) + 1 :]: file.version for file in kept}
    text = "\n".join(f"{path}\t{version}" for path, version in sorted(files.items()))
    fingerprint = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return CloudListing(name, fingerprint, files, None, kept)


def check_files(listing: CloudListing) -> None:
    """Raise InvalidArgument for a file that would not lie in the model's folder (stores take any text for a name), and for one of unknown length."""
    for file in listing.remote:
        if file.size is None:
            raise InvalidArgument(
                f"model '{listing.name}' has a file of which the store does not tell how long it is: '{file.path}'"
            )
    for path in listing.files:
        bare = path.removesuffix("/")
        if not bare or path.startswith("/") or "\0" in path or PurePosixPath(bare).as_posix() != bare or _leaves(bare):
            raise InvalidArgument(f"model '{listing.name}' has a file whose name is no path: '{path}'; rename it")


def _leaves(path: str) -> bool:
    return ".." in PurePosixPath(path).parts
