"""Pure listings of models in cloud repositories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tritonpy import InvalidArgument
from tritonpy.repository import ModelListing
from tritonpy_repo_cloud.remote_file import RemoteFile


@dataclass(frozen=True, slots=True)
class CloudListing(ModelListing):
    """Listing of a model with its store files; paths in `remote` are relative to the repository."""

    remote: Sequence[RemoteFile] = ()


def create_listing(name: str, remote: Iterable[RemoteFile], marker: str) -> CloudListing:
    """Return the listing of a model, without its marker file."""
    kept = tuple(file for file in remote if file.path != f"{name}/{marker}")
    files = {file.path[len(name) + 1 :]: file.version for file in kept}
    text = "\n".join(f"{path}\t{version}" for path, version in sorted(files.items()))
    fingerprint = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return CloudListing(name, fingerprint, files, remote=kept)


def check_files(listing: CloudListing) -> None:
    """Raise `InvalidArgument` for a file of unknown size or with an invalid path.

    Stores accept any text as a name, but a file must lie in the model's folder.
    """
    for file in listing.remote:
        if file.size is None:
            raise InvalidArgument(
                f"model '{listing.name}' has a file of unknown size: '{file.path}'"
            )
    for path in listing.files:
        bare = path.removesuffix("/")
        if (
            not bare
            or path.startswith("/")
            or "\0" in path
            or PurePosixPath(bare).as_posix() != bare
            or _has_parent_reference(bare)
        ):
            raise InvalidArgument(
                f"model '{listing.name}' has a file whose name is not a valid path: '{path}'; "
                "rename it"
            )


def _has_parent_reference(path: str) -> bool:
    return ".." in PurePosixPath(path).parts
