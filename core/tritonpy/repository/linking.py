"""Keeps every ensemble in step with the models that it stands on: it serves while they let it, and is built anew when one of them was."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tritonpy.config.problem import InvalidConfig
from tritonpy.errors import TritonError
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.dependencies import Member, circle, circle_refusal, found_members, member_names, refusal
from tritonpy.repository.linked import linked, stood_on
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.retiring import Departure, Retiring
from tritonpy.repository.table import ModelTable
from tritonpy.repository.wish import Standing, Wanted, Wish

Known = Mapping[str, Collection[str]]
Ready = Mapping[str, Sequence[LoadedModel]]
log = logging.getLogger("tritonpy.repository")


class EnsembleLinks:
    """The ensembles that somebody wants, by their qualified names.

    `relink` makes of what the table holds of ensembles what it should hold, and is called after every other change of the table, with no lock of a model
    held. It takes one lock, waits for nobody and starts no instance: whatever is loaded and unloaded at the same time, the last of the calls
    leaves every ensemble as it should be.
    """

    def __init__(
        self, table: ModelTable, versions: VersionLoading, retiring: Retiring, loaded: Callable[[LoadedModel], None]
    ) -> None:
        self._table = table
        self._versions = versions
        self._retiring = retiring
        self._loaded = loaded
        self._wanted: dict[str, Wanted] = {}
        self._failures: dict[str, tuple[str, str]] = {}
        self._began: list[LoadedModel] = []
        self._ended: list[Departure] = []
        self._closed = False
        self._lock = threading.RLock()

    def want(self, key: str, wish: Wish) -> None:
        """Let the ensemble be as `wish` says from the next `relink` on, or as soon as it can be."""
        with self._lock:
            if self._closed:
                wish.give_up()
                return
            wanted = self._wanted.setdefault(key, Wanted([]))
            for old in wanted.wishes:
                if not old.has_served:
                    old.give_up()
            wanted.wishes = [wish, *(old for old in wanted.wishes if old.has_served)]

    def wish(self, key: str) -> Wish | None:
        """Return the newest wish for an ensemble, None where nobody wants it."""
        with self._lock:
            return self._wanted[key].wishes[0] if key in self._wanted else None

    def settle(self, key: str) -> str:
        """Return what stands against the newest wish, if it does not serve; what served before is then wanted again.

        An ensemble that never served goes on waiting for its models.
        """
        with self._lock:
            wanted = self._wanted.get(key)
            if wanted is None or wanted.serving is wanted.wishes[0]:
                return ""
            newest, *before = wanted.wishes
            if before:
                newest.give_up()
                wanted.wishes = before
            else:
                self._table.explain(key, newest.refusal)
            return newest.refusal

    def narrow(self, key: str, versions: Collection[int]) -> None:
        """Let the ensemble be without some of its versions from the next `relink` on."""
        with self._lock:
            wanted = self._wanted.get(key)
            for wish in wanted.wishes if wanted is not None else ():
                left = [version for version in wish.prepared.chosen()[0] if version not in versions]
                wish.prepared = replace(wish.prepared, named=left)
                wish.overridden, wish.built_on = True, None

    def drop(self, key: str) -> list[Departure]:
        """Want the ensemble no more; return what is to be retired of it."""
        with self._lock:
            wanted = self._wanted.pop(key, None)
            if wanted is None:
                return []
            self._table.retract(key)
            old = [] if wanted.serving is None else self._table.swap(key, {})
            return _departures(key, wanted.wishes, wanted.serving, old)

    def wanted(self) -> list[str]:
        """Return all ensembles that somebody wants."""
        with self._lock:
            return list(self._wanted)

    def member_names(self, key: str) -> list[str]:
        """Return the names of the models that the newest wish for an ensemble has; none for a model that is not an ensemble."""
        wish = self.wish(key)
        return [] if wish is None else member_names(wish.prepared.config)

    def members(self, key: str) -> list[str]:
        """Return the models that an ensemble stands on; none of a model that is not an ensemble."""
        with self._lock:
            return self._needs(key, self._known())

    def needed(self, key: str) -> bool:
        """Say whether any ensemble stands on a model."""
        with self._lock:
            known = self._known()
            return any(key in self._needs(ensemble, known) for ensemble in self._wanted)

    def failed(self, key: str, name: str, reason: str) -> None:
        """Take note of why a model did not load."""
        with self._lock:
            self._failures[key] = name, reason

    def forget(self, key: str) -> None:
        """Take note that a model serves, or that nobody wants it."""
        with self._lock:
            self._failures.pop(key, None)

    def relink(self) -> None:
        """Build anew the ensembles that can serve on other models than before, and take those away that cannot serve."""
        with self._lock:
            if not self._wanted:
                return  # called for every model of thousands
            known = self._known()
            while not self._closed and any([self._review(key, known) for key in self._wanted]):
                pass  # an ensemble may be a member of others
            began, self._began = self._began, []
            ended, self._ended = self._ended, []
            self._retiring.retire(*ended)
        for model in began:
            self._loaded(model)

    @contextmanager
    def standstill(self) -> Iterator[None]:
        """Let no ensemble begin, end, or be wanted meanwhile."""
        with self._lock:
            yield

    def close(self) -> list[Departure]:
        """Let no ensemble begin any more, and want none; return what is to be retired of them."""
        with self._lock:
            self._closed = True
            return [departure for key in list(self._wanted) for departure in self.drop(key)]

    def _known(self) -> Known:
        """Return the qualified names of the models that the wanted ensembles name, by these names."""
        known: dict[str, set[str]] = {
            name: set(self._table.serving(name))
            for wanted in self._wanted.values()
            for wish in wanted.wishes
            for name in member_names(wish.prepared.config)
        }
        others = {key: wanted.wishes[0].prepared.name for key, wanted in self._wanted.items()}
        others |= {key: name for key, (name, _) in self._failures.items()} if known else {}
        for key, name in others.items():
            if name in known:
                known[name].add(key)
        return known

    def _needs(self, key: str, known: Known) -> list[str]:
        wanted = self._wanted.get(key)
        if wanted is None:
            return []
        prepared = wanted.effective.prepared
        return list(found_members(prepared.config, prepared.namespace, known).values())

    def _review(self, key: str, known: Known) -> bool:
        """Let the first wish serve that can; return whether that changed anything."""
        wanted = self._wanted[key]
        for wish in wanted.wishes:
            found = found_members(wish.prepared.config, wish.prepared.namespace, known)
            ready = {member: tuple(self._table.ready(member)) for member in found.values()}
            wish.against = self._against(key, wish, found, ready, known)
            if wish.against:
                continue
            standing = tuple(ready[found[step.model_name]] for step in wish.prepared.config.ensemble_scheduling.step)
            if standing != wish.built_on:
                models = self._build(key, wish, standing, found)
                if models:
                    self._serve(key, wanted, wish, models)
                    return True
            elif not wish.refusal:
                return False
        return self._end(key, wanted)

    def _against(self, key: str, wish: Wish, found: Mapping[str, str], ready: Ready, known: Known) -> str:
        way = circle(key, lambda node: found.values() if node == key else self._needs(node, known))
        if way:
            return circle_refusal(key, way)
        members = {member: self._member(member, versions) for member, versions in ready.items()}
        return refusal(key, wish.prepared.config, found, members)

    def _member(self, key: str, ready: Sequence[LoadedModel]) -> Member:
        versions = [model.version for model in ready]
        wanted = self._wanted.get(key)
        if wanted is None:
            return Member(versions, failure=self._failures.get(key, ("", ""))[1])
        return Member(versions) if wanted.serving else Member((), wanted.wishes[0].invalid, wanted.wishes[0].failure)

    def _build(
        self, key: str, wish: Wish, standing: Standing, found: Mapping[str, str]
    ) -> Mapping[int, LoadedModel]:  # fmt: skip
        """Return the loaded versions, none where `wish` now says what is wrong."""
        wish.built_on, wish.unfit, wish.failure = standing, "", ""
        try:
            prepared = linked(key, wish.prepared, found, standing)
        except InvalidConfig as error:
            wish.unfit = error.message
            return {}
        try:
            models = self._versions.load(prepared, self._versions.choose(prepared))
        except TritonError as error:
            wish.failure = error.message
            return {}
        for model in models.values():
            model.members = stood_on(prepared.config, standing)
        return models

    def _serve(self, key: str, wanted: Wanted, wish: Wish, models: Mapping[int, LoadedModel]) -> None:
        place = wanted.wishes.index(wish)
        outdated, wanted.wishes = wanted.wishes[place + 1 :], wanted.wishes[: place + 1]
        old = self._table.swap(key, models)
        replaced = wanted.serving if wanted.serving in outdated else None
        self._ended += _departures(key, outdated, replaced, old)
        log.info("successfully loaded '%s'", key)
        self._began += models.values()
        wanted.serving = wish
        wish.began()

    def _end(self, key: str, wanted: Wanted) -> bool:
        if wanted.serving is None:
            return False
        log.error("%s", wanted.serving.refusal)
        self._ended.append(Departure(key, self._table.swap(key, {})))
        wanted.serving.built_on = None
        wanted.serving = None
        return True


def _departures(
    key: str, wishes: Sequence[Wish], serving: Wish | None, models: Sequence[LoadedModel]
) -> list[Departure]:  # fmt: skip
    """Return what is to be retired where `models` and `wishes` go, one of which the models serve."""
    departures = [Departure(key, models, serving.prepared if serving is not None else None)]
    for wish in wishes:
        if not wish.has_served:
            wish.give_up()
        elif wish is not serving:
            departures.append(Departure(key, (), wish.prepared))
    return departures
