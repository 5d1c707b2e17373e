"""Signals that end process groups.

Workers ignore them, because the server lets its workers finish.
"""

from __future__ import annotations

import os
import signal
from threading import local

_ENDING = (signal.SIGINT, signal.SIGTERM)
_forking = local()  # signals that the forking thread had blocked


def ignore() -> None:
    """Ignore the signals in this process, but not in processes that a model starts.

    Unlike SIG_IGN, handlers are not inherited by programs. Forks inherit them until they are reset;
    the signals stay blocked until then.
    """
    install_handlers()
    os.register_at_fork(before=_block, after_in_parent=_restore, after_in_child=_reset)


def install_handlers() -> None:
    """Ignore the signals in a fork that is a worker itself."""
    for number in _ENDING:
        signal.signal(number, lambda *_: None)


def _block() -> None:
    _forking.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


def _restore() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.blocked)


def _reset() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _restore()
