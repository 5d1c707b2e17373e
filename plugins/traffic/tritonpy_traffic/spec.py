"""Specification of a route as its owner writes it: plain data with validation."""

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
    """A version of a model, or the newest one that serves."""

    model: Annotated[str, Meta(min_length=1, description="Name of a model.")]
    version: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Its version; the newest by default.")
    ] = None

    @property
    def label(self) -> str:
        """Name in hashes, logs and responses: `digits:2`, or `digits` for the newest version."""
        return self.model if self.version is None else f"{self.model}:{self.version}"

    @property
    def number(self) -> int:
        """Version as used in requests: -1 is the newest."""
        return -1 if self.version is None else self.version


class WeightedTarget(Target, frozen=True):
    """A target and its weight."""

    weight: Annotated[
        float, Meta(ge=0, description="Its share of the requests, relative to the other weights.")
    ] = 1.0


class Sticky(_Part, frozen=True):
    """The key that keeps requests on one target: a header or a request parameter."""

    header: Annotated[str, Meta(description="Name of a header.")] = ""
    parameter: Annotated[str, Meta(description="Name of a request parameter.")] = ""


class CanaryStep(_Part, frozen=True):
    """One step of a canary. It ends when `seconds` have passed and `requests` have responses."""

    share: Annotated[float, Meta(gt=0, le=1, description="The canary's share of the requests.")]
    seconds: Annotated[float, Meta(ge=0, description="Minimum duration of the step.")] = 0.0
    requests: Annotated[
        int, Meta(ge=0, description="Minimum number of canary responses in the step.")
    ] = 0


class CanaryLimits(_Part, frozen=True):
    """The limits of a canary, which is rolled back if it exceeds one. None means no limit.

    A limit counts as exceeded if that is certain with `confidence`, for any number of requests.
    """

    error_rate: Annotated[
        Share | None, Meta(description="Maximum share of its responses that fail.")
    ] = 0.05
    error_rate_over_primary: Annotated[
        Share | None, Meta(description="Maximum error rate above that of the primary.")
    ] = 0.01
    latency_ms: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Maximum latency at the quantile, in ms."),
    ] = None
    latency_over_primary: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        Meta(description="Maximum latency at the quantile, as a multiple of the primary's."),
    ] = 2.0
    latency_quantile: Annotated[
        float, Meta(gt=0, lt=1, description="The quantile for latency limits.")
    ] = 0.95
    confidence: Annotated[
        float,
        Meta(
            ge=0.5, lt=1, description="Minimum probability that a good canary is not rolled back."
        ),
    ] = 0.99


class Canary(Target, frozen=True):
    """A new version that receives a growing share of the requests, or is rolled back."""

    steps: Annotated[list[CanaryStep], Meta(min_length=1, description="Its steps, in order.")] = (
        msgspec.field(
            default_factory=lambda: [
                CanaryStep(share, 60, 100) for share in (0.01, 0.05, 0.25, 0.5)
            ]
        )
    )
    limits: CanaryLimits = CanaryLimits()
    max_failed_share: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description=(
                "Maximum share of the route's responses in a step that are failures of the canary."
            ),
        ),
    ] = 0.01
    promote: Annotated[bool, Meta(description="Promote it automatically after its last step.")] = (
        True
    )

    @property
    def target(self) -> Target:
        """The version under test."""
        return Target(self.model, self.version)


class Tolerance(_Part, frozen=True):
    """Allowed difference of two numbers: `absolute + relative * |primary's|`."""

    relative: Annotated[float, Meta(ge=0)] = 0.0
    absolute: Annotated[float, Meta(ge=0)] = 0.0


class Shadow(Target, frozen=True):
    """A target that receives copies of requests.

    Its responses are compared with those of the primary, and never returned to clients.
    """

    share: Annotated[Share, Meta(description="Share of the requests that are copied.")] = 1.0
    tolerance: Annotated[Tolerance, Meta(description="Allowed difference of outputs.")] = Tolerance(
        1e-4, 1e-6
    )
    tolerances: Annotated[
        dict[str, Tolerance], Meta(description="Tolerances for single outputs, by name.")
    ] = {}
    max_open: Annotated[
        int, Meta(ge=1, description="Maximum number of copies in flight; more are dropped.")
    ] = 32
    max_bytes: Annotated[
        int, Meta(ge=1, description="Maximum bytes of inputs of these copies.")
    ] = 64 * 2**20

    @property
    def target(self) -> Target:
        """The version that is compared."""
        return Target(self.model, self.version)


class RouteSpec(_Part, frozen=True):
    """A route: where requests that name it go. The first target is its primary."""

    targets: Annotated[
        list[WeightedTarget],
        Meta(min_length=1, description="Targets of requests; the first is the primary."),
    ]
    sticky: Sticky | None = None
    canary: Canary | None = None
    shadow: Shadow | None = None

    def problems(self) -> Iterator[str]:
        """Yield the problems that concern several fields."""
        labels = [target.label for target in self.targets]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            yield f"targets: '{label}' is named twice"
        if not sum(target.weight for target in self.targets):
            yield "targets: the weights are all 0"
        if self.sticky is not None and bool(self.sticky.header) == bool(self.sticky.parameter):
            yield "sticky: set either a header or a parameter"
        if self.canary is not None:
            if self.canary.label in labels:
                yield f"canary: '{self.canary.label}' is a target already"
            yield from _step_problems(self.canary.steps)


def _step_problems(steps: list[CanaryStep]) -> Iterator[str]:
    for number, step in enumerate(steps):
        if not step.seconds and not step.requests:
            yield (
                f"canary.steps[{number}]: set seconds or requests, otherwise the step ends "
                "immediately"
            )
    for number, (before, after) in enumerate(pairwise(steps), 1):
        if after.share <= before.share:
            yield (
                f"canary.steps[{number}].share: {after.share:g} does not rise from {before.share:g}"
            )
