"""The run of a benchmark of a language model: all levels, then the reports."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tritonpy import StartupError, __version__
from tritonpy_bench.generation.connection import ConnectionPool
from tritonpy_bench.generation.figures import LevelFigures, level_figures
from tritonpy_bench.generation.load import GenerationLoad
from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_bench.generation.prompts import Tokenizer, make_requests, open_tokenizer
from tritonpy_bench.generation.report import (
    FORMAT,
    GenerationResult,
    level_text,
    write_csv,
    write_html,
    write_json,
)
from tritonpy_bench.generation.server_figures import ServerFigures
from tritonpy_bench.sweep import Outcome, next_level
from tritonpy_load_generator.interruption import interruption
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.wire.address import Address, http_address
from tritonpy_load_generator.wire.tls import https_client_context

_LEAST_REQUESTS = 20  # of a level without --request-count
_REQUESTS_PER_CLIENT = 4
_SECONDS_PER_RATE = 10
_LIVE_S = 0.5


def run_generation(options: GenerationOptions, arguments: argparse.Namespace, command: str) -> int:
    """Measure all levels, print them, write the reports, and return the exit status.

    Raises BadUsage, and StartupError if the server cannot be reached or a file not be written.
    """
    address = http_address(LoadOptions(model=options.model, url=options.address))
    tokens_of = open_tokenizer(options, address)
    result = GenerationResult(
        format=FORMAT,
        tool=f"tritonpy {__version__}",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        model=options.model,
        url=str(address),
        endpoint_type=options.endpoint_type,
        names=options.names,
        levels=[],
    )
    live = sys.stderr.isatty() and not arguments.no_live
    asyncio.run(_measure(options, address, tokens_of, result, live=live))
    _write(arguments, result)
    failed = not result.levels or any(not level.requests for level in result.levels)
    return 1 if failed else 0


async def _measure(
    options: GenerationOptions,
    address: Address,
    tokens_of: Tokenizer | None,
    result: GenerationResult,
    *,
    live: bool,
) -> None:
    context = https_client_context(LoadOptions(model=options.model)) if address.tls else None
    pool = ConnectionPool(address, context)
    load = GenerationLoad(options, pool, _head(options, address))
    outcomes: list[Outcome] = []
    try:
        await _check_server(address)
        with interruption() as interrupted:
            while not interrupted.is_set():
                level = next_level(options.levels, outcomes)
                if level is None or (options.fixed_schedule and outcomes):
                    return
                await _warm_up(options, load, level, tokens_of)
                figures = await _measure_level(
                    options, load, level, tokens_of, interrupted, live=live
                )
                result.levels.append(figures)
                outcomes.append(Outcome(level, kept=True))
                sys.stdout.write(level_text(figures) + "\n")
                sys.stdout.flush()
    finally:
        pool.close()


async def _warm_up(
    options: GenerationOptions, load: GenerationLoad, level: float, tokens_of: Tokenizer | None
) -> None:
    """Send other prompts than those of the measurement, so that they are in no cache."""
    if options.warmup_request_count and not options.fixed_schedule:
        other = msgspec.structs.replace(options, seed=options.seed + 1)
        await load.run(level, make_requests(other, options.warmup_request_count, tokens_of))


async def _measure_level(
    options: GenerationOptions,
    load: GenerationLoad,
    level: float,
    tokens_of: Tokenizer | None,
    interrupted: asyncio.Event,
    *,
    live: bool,
) -> LevelFigures:
    requests = make_requests(options, _request_count(options, level), tokens_of)
    mode = _mode(options)
    async with ServerFigures(options.metrics_url) as server:
        running = asyncio.create_task(load.run(level, requests))
        stopping = asyncio.create_task(interrupted.wait())
        display = asyncio.create_task(_show(load, len(requests))) if live else None
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        is_complete = running.done()
        for task in (stopping, display, None if is_complete else running):
            if task is not None:
                task.cancel()
        await asyncio.gather(running, return_exceptions=not is_complete)
    ended = [each for each in load.exchanges if each.ended_ns]
    figures = level_figures(mode, level, ended, options, tokens_of)
    figures.server = server.figures
    figures.interrupted = not is_complete
    return figures


async def _show(load: GenerationLoad, total: int) -> None:
    """Show the progress in one line of the terminal."""
    before, at = 0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(_LIVE_S)
            parts = sum(len(each.parts) for each in load.exchanges)
            now = time.monotonic()
            done = sum(1 for each in load.exchanges if each.ended_ns)
            rate = (parts - before) / (now - at)
            before, at = parts, now
            sys.stderr.write(
                f"\r\x1b[K{done}/{total} requests, {load.running} running, {rate:.0f} parts/s"
            )
            sys.stderr.flush()
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


async def _check_server(address: Address) -> None:
    try:
        _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        raise StartupError(f"no server answers at {address}: {error.strerror or error}") from error
    writer.close()


def _request_count(options: GenerationOptions, level: float) -> int:
    """Return the number of requests of a level; of sessions each has all its turns."""
    if options.num_sessions:
        return options.num_sessions * options.turns
    if options.request_count:
        return options.request_count
    wanted = _SECONDS_PER_RATE if options.request_rate_range is not None else _REQUESTS_PER_CLIENT
    return max(_LEAST_REQUESTS, round(level * wanted))


def _mode(options: GenerationOptions) -> str:
    if options.fixed_schedule:
        return "schedule"
    return "concurrency" if options.request_rate_range is None else "request_rate"


def _head(options: GenerationOptions, address: Address) -> bytes:
    """Return the head of all requests, with a place for the length of the body."""
    headers = [("Host", str(address)), ("Content-Type", "application/json"), *options.headers]
    if options.api_key:
        headers.append(("Authorization", f"Bearer {options.api_key}"))
    lines = [f"POST {address.prefix}{options.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join(lines).replace("%", "%%") + "\r\nContent-Length: %d\r\n\r\n"
    return text.encode("latin-1")


def _write(arguments: argparse.Namespace, result: GenerationResult) -> None:
    """Write all requested reports. Raises StartupError with the files that could not be written."""
    failed = []
    writers: Sequence[tuple[Path | None, Callable[[Path, Any], None]]] = (
        (arguments.json, write_json),
        (arguments.csv, write_csv),
        (arguments.html, lambda path, result: write_html(path, [result])),
    )
    for path, write in writers:
        try:
            if path is not None:
                write(path, result)
        except OSError as error:
            failed.append(f"{path} cannot be written: {error}")
    if failed:
        raise StartupError("\n".join(failed))
