"""Signals that ask a group of processes to end: they mean the server, which lets its workers finish."""

from __future__ import annotations

import os
import signal
from threading import local

_ENDING = (signal.SIGINT, signal.SIGTERM)
_forking = local()  # the signals that the forking thread had blocked


def ignore() -> None:
    """Let the process live on; processes that a model starts are ended by them as anywhere else.

    Handlers, unlike SIG_IGN, are not inherited by programs. Forks inherit them until they can be reset; a signal that comes before is kept.
    """
    live_on()
    os.register_at_fork(before=_hold, after_in_parent=_let, after_in_child=_reset)


def live_on() -> None:
    """Do the same in a fork that is a worker itself."""
    for number in _ENDING:
        signal.signal(number, lambda *_: None)


def _hold() -> None:
    _forking.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


def _let() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.blocked)


def _reset() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let()
