"""What a route is, as its owner writes it: plain data with one text for each thing that is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

Share = Annotated[float, Meta(ge=0, le=1)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Part of a route."""


class Target(_Part, frozen=True):
    """A version of a model, or the newest that serves."""

    model: Annotated[str, Meta(min_length=1, description="Name of a model.")]
    version: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Its version; without one the newest.")] = (
        None
    )

    @property
    def label(self) -> str:
        """Its name in hashes, logs and answers: `digits:2`, or `digits` for the newest version."""
        return self.model if self.version is None else f"{self.model}:{self.version}"

    @property
    def number(self) -> int:
        """Its version as requests have it: -1 is the newest."""
        return -1 if self.version is None else self.version


class WeightedTarget(Target, frozen=True):
    """A target and its part of the requests."""

    weight: Annotated[float, Meta(ge=0, description="Its part of the requests, against the others' weights.")] = 1.0


class Sticky(_Part, frozen=True):
    """What makes requests go to the same target: the value of a header, or of a request parameter."""

    header: Annotated[str, Meta(description="Name of a header.")] = ""
    parameter: Annotated[str, Meta(description="Name of a request parameter.")] = ""


class Step(_Part, frozen=True):
    """One step of a canary; it ends when both its time and its requests have come."""

    share: Annotated[float, Meta(gt=0, le=1, description="The canary's share of the requests.")]
    seconds: Annotated[float, Meta(ge=0, description="The shortest time that the step takes.")] = 0.0
    requests: Annotated[int, Meta(ge=0, description="The fewest answers of the canary that the step takes.")] = 0


class Limits(_Part, frozen=True):
    """What a canary may be like before it is rolled back; None is no limit.

    A limit counts as passed when that is certain to `confidence`, whatever the number of requests was.
    """

    error_rate: Annotated[Share | None, Meta(description="Highest share of its answers that fail.")] = 0.05
    error_rate_over_primary: Annotated[
        Share | None, Meta(description="Highest share by which more of its answers fail than of the primary's.")
    ] = 0.01
    latency_ms: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Highest latency at the quantile, in ms.")
    ] = None
    latency_over_primary: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        Meta(description="Highest latency at the quantile, as a multiple of the primary's."),
    ] = 2.0
    latency_quantile: Annotated[float, Meta(gt=0, lt=1, description="The quantile that latency limits are for.")] = 0.95
    confidence: Annotated[
        float, Meta(ge=0.5, lt=1, description="How sure a roll-back is: a good canary survives with this probability.")
    ] = 0.99


class Canary(Target, frozen=True):
    """A new version that gets more and more requests, or is rolled back."""

    steps: Annotated[list[Step], Meta(min_length=1, description="Its shares, one after the other.")] = msgspec.field(
        default_factory=lambda: [Step(share, 60, 100) for share in (0.01, 0.05, 0.25, 0.5)]
    )
    limits: Limits = Limits()
    max_failed_share: Annotated[
        float,
        Meta(gt=0, le=1, description="Share of the route's answers in a step that may be failures of the canary."),
    ] = 0.01
    promote: Annotated[bool, Meta(description="Promote it by itself after its last step.")] = True

    @property
    def target(self) -> Target:
        """The version that is tried."""
        return Target(self.model, self.version)


class Tolerance(_Part, frozen=True):
    """How far two numbers may differ: `absolute + relative * |primary's|`."""

    relative: Annotated[float, Meta(ge=0)] = 0.0
    absolute: Annotated[float, Meta(ge=0)] = 0.0


class Shadow(Target, frozen=True):
    """Who gets copies of requests; the answers are compared and never returned."""

    share: Annotated[Share, Meta(description="Share of the requests that are copied.")] = 1.0
    tolerance: Annotated[Tolerance, Meta(description="How far outputs may differ.")] = Tolerance(1e-4, 1e-6)
    tolerances: Annotated[dict[str, Tolerance], Meta(description="The same for single outputs, by name.")] = {}
    max_open: Annotated[int, Meta(ge=1, description="Most copies that wait or run; one more is dropped.")] = 32
    max_bytes: Annotated[int, Meta(ge=1, description="Most bytes of inputs that these copies keep.")] = 64 * 2**20

    @property
    def target(self) -> Target:
        """The version that is compared."""
        return Target(self.model, self.version)


class RouteSpec(_Part, frozen=True):
    """A route: where requests that name it go. The first target is its primary."""

    targets: Annotated[
        list[WeightedTarget], Meta(min_length=1, description="Where requests go; the first is the primary.")
    ]
    sticky: Sticky | None = None
    canary: Canary | None = None
    shadow: Shadow | None = None

    def problems(self) -> Iterator[str]:
        """Yield what no single field shows."""
        labels = [target.label for target in self.targets]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            yield f"targets: '{label}' is named twice"
        if not sum(target.weight for target in self.targets):
            yield "targets: the weights are all 0"
        if self.sticky is not None and bool(self.sticky.header) == bool(self.sticky.parameter):
            yield "sticky: name a header or a parameter, one of them"
        if self.canary is not None:
            if self.canary.label in labels:
                yield f"canary: '{self.canary.label}' is a target already"
            yield from _step_problems(self.canary.steps)


def _step_problems(steps: list[Step]) -> Iterator[str]:
    for number, step in enumerate(steps):
        if not step.seconds and not step.requests:
            yield f"canary.steps[{number}]: it needs seconds or requests, or it is over at once"
    for number, (before, after) in enumerate(pairwise(steps), 1):
        if after.share <= before.share:
            yield f"canary.steps[{number}].share: {after.share:g} does not rise from {before.share:g}"
