"""Parsing of flags about instances: resources of the rate limiter, host policies."""

from __future__ import annotations

from tritonpy.cli.flag import integer

_HOST_SETTINGS = ("numa-node", "cpu-cores")


def resource(text: str) -> tuple[str, str, int]:
    """Parse `<name>:<count>[:<device>]` and return ("", key under `rate_limit.resources`, count).

    Raises ValueError with Triton's text.
    """
    name, *numbers = text.split(":")
    if len(numbers) not in {1, 2}:
        raise ValueError(
            "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or '<resource_name>:<count>'. "
            f"Got {text}"
        )
    count, *device = [integer(number) for number in numbers]
    return "", ":".join([name, *map(str, device)]), count


def smallest_counts(resources: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Return each resource once, with its smallest count, as Triton does."""
    counts: dict[str, int] = {}
    for _, key, count in resources:
        counts[key] = min(count, counts.get(key, count))
    return [("", key, count) for key, count in counts.items()]


def host_setting(text: str) -> tuple[str, str, str]:
    """Return policy, setting and value of `<policy>,<setting>=<value>`.

    Raises ValueError with Triton's text.
    """
    policy, _, rest = text.partition(",")
    setting, _, value = rest.partition("=")
    if not (policy and setting and value):
        raise ValueError(f"--host-policy option format is '<policy name>,<setting>=<value>'. Got {text}")
    if setting not in _HOST_SETTINGS:
        raise ValueError(
            f"Unsupported host policy setting '{setting}' is specified, supported settings are 'numa-node', 'cpu-cores'"
        )
    return policy, setting, value
