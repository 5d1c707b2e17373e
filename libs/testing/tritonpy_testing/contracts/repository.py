"""The contract of model repositories."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tritonpy import Unavailable
from tritonpy.repository import Repository, RepositoryContext
from tritonpy_testing.contracts.optional import given, only_if
from tritonpy_testing.contracts.plugin import PluginContract

Models = Mapping[str, Mapping[str, bytes]]
MODELS: Models = {
    "one": {"config.pbtxt": b'backend: "toy"', "1/model.onnx": b"first", "2/model.onnx": b"second"},
    "two": {"1/model.onnx": b"other", "1/data/weights.bin": bytes(range(256))},
}


class RepositoryContract(PluginContract):
    """The contract of `Repository`. Set `plugin_class` and write `place`.

    If `unreachable_url` is set, its error is checked.
    """

    interface = Repository
    hook = "tritonpy_repositories"
    unreachable_url: ClassVar[str] = ""

    @abstractmethod
    def place(self, tmp_path: Path, models: Models) -> str:
        """Store exactly `models` in one place, and return its URL.

        `models` maps names to contents by relative path.
        """

    def open(self, tmp_path: Path, url: str) -> Repository:
        """Return the repository at `url`."""
        cache = tmp_path / "repository cache"
        cache.mkdir(exist_ok=True)
        repository = self.plugin_class(self.make_options(), RepositoryContext(url, cache))
        assert isinstance(repository, Repository)
        return repository

    def test_scan_lists_models_by_name(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        listings = repository.scan()
        assert set(listings) == set(MODELS)
        for name, listing in listings.items():
            assert listing.name == name
            assert set(listing.files) == set(MODELS[name]), (
                f"the files of '{name}' are listed as {sorted(listing.files)}"
            )
        repository.close()

    def test_one_model_is_found_as_the_scan_lists_it(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        assert sorted(repository.names()) == sorted(MODELS)
        for name in MODELS:
            listing = repository.find(name)
            assert listing is not None, f"find() does not know '{name}', which scan() lists"
            assert (listing.name, set(listing.files)) == (name, set(MODELS[name]))
        assert repository.find("no such model") is None
        repository.close()

    def test_an_empty_repository_lists_nothing(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, {}))
        assert not repository.scan()
        repository.close()

    def test_fingerprints_are_stable(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        assert repository.scan() == repository.scan(), "a second scan of the same files differs"
        repository.close()

    def test_a_changed_file_changes_its_fingerprint_and_the_model_s(self, tmp_path: Path) -> None:
        url = self.place(tmp_path, MODELS)
        repository = self.open(tmp_path, url)
        before = repository.scan()
        self.place(
            tmp_path, {**MODELS, "one": {**MODELS["one"], "2/model.onnx": b"a changed second"}}
        )
        after = repository.scan()
        assert after["one"].fingerprint != before["one"].fingerprint, (
            "the model's fingerprint did not change"
        )
        assert after["one"].files["2/model.onnx"] != before["one"].files["2/model.onnx"], (
            "the file's fingerprint did not change"
        )
        repository.close()

    def test_a_removed_file_and_a_removed_model_are_noticed(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        before = repository.scan()
        self.place(tmp_path, {"one": {"1/model.onnx": b"first"}})
        after = repository.scan()
        assert set(after) == {"one"}
        assert set(after["one"].files) == {"1/model.onnx"}
        assert after["one"].fingerprint != before["one"].fingerprint, (
            "removing a file did not change the fingerprint"
        )
        repository.close()

    def test_localize_provides_the_files(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        for name, listing in repository.scan().items():
            folder = repository.localize(listing)
            found = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file()
            }
            assert found == MODELS[name], f"localize() provided {sorted(found)} for '{name}'"
            repository.release(folder)
        repository.close()

    def test_one_file_of_a_model_can_be_read(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        listing = repository.scan()["one"]
        assert repository.peek(listing, "config.pbtxt") in (None, MODELS["one"]["config.pbtxt"])
        assert repository.peek(listing, "no such file") is None
        folder = repository.localize(listing)
        assert repository.peek(listing, "config.pbtxt") in (None, MODELS["one"]["config.pbtxt"]), (
            "peek() must also work after localize()"
        )
        repository.release(folder)
        repository.close()

    def test_two_users_of_a_model_do_not_disturb_each_other(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        listing = repository.scan()["one"]
        first, second = repository.localize(listing), repository.localize(listing)
        repository.release(first)
        for path, content in MODELS["one"].items():
            file = second / path
            assert file.is_file(), f"release() of one folder removed '{path}' from another"
            assert file.read_bytes() == content
        repository.release(second)
        repository.close()

    def test_watch_and_interrupt_need_no_support(self, tmp_path: Path) -> None:
        repository = self.open(tmp_path, self.place(tmp_path, MODELS))
        repository.watch(lambda: None)
        repository.interrupt()
        repository.close()

    @only_if(given("unreachable_url"))
    def test_an_unreachable_repository_is_unavailable(self, tmp_path: Path) -> None:
        try:
            self.open(tmp_path, self.unreachable_url).scan()
        except Unavailable as error:
            assert error.message, "the error has no text"
            return
        raise AssertionError(f"scan() of {self.unreachable_url} did not raise Unavailable")
