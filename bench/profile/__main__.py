"""Cost of one request by stage: `python -m bench.profile`.

The server runs in this process with wrapped functions; wrk and h2load are the clients. Time is in
microseconds per request. Calls are those of Python and C functions. Blocks are memory blocks that a
stage leaves allocated (negative: frees). The rest, compiled code of the transports and the kernel,
is the difference to the CPU time without recorders.
"""

from __future__ import annotations

import argparse

from bench.profile.scenario import Scenario, profile
from bench.profile.stages import BACKENDS, PROTOCOLS
from bench.profile.table import table


def main() -> None:
    """Measure the chosen scenarios and print a table per scenario."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    arguments = parser.parse_args()
    for protocol in PROTOCOLS:
        for backend in BACKENDS:
            for in_flight in arguments.in_flight:
                scenario = Scenario(protocol, backend, in_flight)
                if arguments.only in str(scenario):
                    print(table(scenario, profile(scenario, arguments.seconds)), flush=True)


if __name__ == "__main__":
    main()
