from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tritonpy import Unavailable, hookimpl
from tritonpy.repository import ModelListing, Repository
from tritonpy_testing import RepositoryContract


class Folder(Repository):
    """A repository in a folder. Fingerprints are digests of the content."""

    def scan(self):
        root = Path(self.context.url.removeprefix("toy://"))
        if not root.is_dir():
            raise Unavailable(f"{root} is no folder")
        return {folder.name: self.listing(folder) for folder in root.iterdir()}

    def listing(self, folder):
        files = {
            path.relative_to(folder).as_posix(): self.fingerprint(path)
            for path in sorted(folder.rglob("*")) if path.is_file()
        }  # fmt: skip
        return ModelListing(folder.name, str(files), files, folder)

    def fingerprint(self, path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_repositories():
        return {"toy": Folder}


class FolderContract(RepositoryContract):
    plugin_class = Folder
    unreachable_url = "toy:///nowhere/at/all"

    def place(self, tmp_path, models):
        root = tmp_path / "place"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for name, files in models.items():
            for file, content in files.items():
                path = root / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return f"toy://{root}"


class TestFolder(FolderContract):
    plugin = Plugin
    name = "toy"


def test_an_unreachable_repository_is_checked_if_a_url_is_set(tests):
    contract = type("Contract", (RepositoryContract,), {"plugin_class": Folder})
    assert tests(FolderContract) - tests(contract) == {
        "test_an_unreachable_repository_is_unavailable"
    }


class TopFilesOnly(Folder):
    def listing(self, folder):
        files = {path.name: "" for path in folder.iterdir() if path.is_file()}
        return ModelListing(folder.name, str(files), files, folder)


class Unsteady(Folder):
    count = 0

    def fingerprint(self, path):
        type(self).count += 1
        return str(self.count)


class Blind(Folder):
    def fingerprint(self, path):
        return "same"


class Coarse(Folder):
    def listing(self, folder):
        return ModelListing(folder.name, "same", super().listing(folder).files, folder)


class Remembering(Folder):
    seen = None

    def scan(self):
        self.seen = {**(self.seen or {}), **super().scan()}
        return self.seen


class OtherFolder(Folder):
    def localize(self, listing):
        return listing.path / "1"


class Possessive(Folder):
    def localize(self, listing):
        target = listing.path.parent.parent / "handed out"
        shutil.copytree(listing.path, target, dirs_exist_ok=True)
        return target

    def release(self, path):
        shutil.rmtree(path, ignore_errors=True)


class Deaf(Folder):
    def interrupt(self):
        raise RuntimeError("not now")


class Nameless(Folder):
    def scan(self):
        return {name.upper(): listing for name, listing in super().scan().items()}


class EmptyWhenGone(Folder):
    def scan(self):
        try:
            return super().scan()
        except Unavailable:
            return {}


class Ghost(Folder):
    def scan(self):
        models = super().scan()
        return models or {"ghost": ModelListing("ghost", "", {})}


class Forgetful(Folder):
    def find(self, name):
        return None


class TooHelpful(Folder):
    def find(self, name):
        return next(iter(self.scan().values()))


BROKEN = {
    Forgetful: "test_one_model_is_found_as_the_scan_lists_it",
    TooHelpful: "test_one_model_is_found_as_the_scan_lists_it",
    TopFilesOnly: "test_scan_lists_models_by_name",
    Nameless: "test_scan_lists_models_by_name",
    Possessive: "test_two_users_of_a_model_do_not_disturb_each_other",
    Deaf: "test_watch_and_interrupt_need_no_support",
    Ghost: "test_an_empty_repository_lists_nothing",
    Unsteady: "test_fingerprints_are_stable",
    Blind: "test_a_changed_file_changes_its_fingerprint_and_the_model_s",
    Coarse: "test_a_changed_file_changes_its_fingerprint_and_the_model_s",
    Remembering: "test_a_removed_file_and_a_removed_model_are_noticed",
    OtherFolder: "test_localize_provides_the_files",
    EmptyWhenGone: "test_an_unreachable_repository_is_unavailable",
}


@pytest.mark.parametrize("repository", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_repository_fails(failures, repository):
    contract = type("Broken", (FolderContract,), {"plugin_class": repository})
    assert BROKEN[repository] in failures(contract)
