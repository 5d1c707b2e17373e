"""Print what plugins need from outside the checkout: `python3 tools/requirements.py onnx python`.

The lines are in the form of requirements.txt, sorted. An image installs them in a layer of their
own, which changes only with them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from distributions import (
    UnknownDistribution,
    find,
    read_distributions,
    requirement_extras,
    requirement_name,
    with_siblings,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the requirements; return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    parser.add_argument("plugins", nargs="*", help="names as for tools/install.py")
    names = parser.parse_args(argv).plugins
    try:
        print("\n".join(outside_requirements(names)))
    except UnknownDistribution as error:
        sys.exit(f"{parser.prog}: {error}")
    return 0


def outside_requirements(names: Sequence[str]) -> list[str]:
    """Return the requirements of the core and of plugins that are not in the checkout.

    Raises UnknownDistribution.
    """
    distributions = read_distributions()
    chosen = [find("core", distributions), *(find(name, distributions) for name in names)]
    wanted = [f"{each.name}{extras}" for each, extras in chosen]
    found: set[str] = set()
    for sibling in with_siblings(wanted, distributions):
        found.update(sibling.requirements)
    for text in wanted:
        extras = distributions[requirement_name(text)].extras
        for extra in requirement_extras(text):
            found.update(extras.get(extra, ()))
    return sorted(text for text in found if requirement_name(text) not in distributions)


if __name__ == "__main__":
    sys.exit(main())
