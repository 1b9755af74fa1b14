"""Ctrl-C and polite kills: heard between steps, so that what there is can be saved, and told apart when all is over."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

_heard: list[int] = []  # the signals that asked this process to end
_questions: list[threading.Event] = []  # of the `interruptible` that is under way


@contextmanager
def listening() -> Iterator[None]:
    """Of a program, while it runs: a polite kill is heard as Ctrl-C is, and it can be told whether there was one."""
    _heard.clear()
    before = {}
    if threading.current_thread() is threading.main_thread():
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        before = {s: signal.signal(s, _end_now) for s, handler in usual.items() if signal.getsignal(s) is handler}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
        _heard.clear()


def was_heard() -> bool:
    """Whether somebody wanted to stop this program, even where some library did not pass that on."""
    return bool(_heard)


def killed() -> bool:
    """Whether a polite kill was heard."""
    return signal.SIGTERM in _heard


def exit_code() -> int:
    """Of a program that somebody stopped, as shells have it: 130 after Ctrl-C, 143 after a polite kill."""
    return 128 + (_heard[-1] if _heard else signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or a polite kill) into a question that can be asked between steps; a second one is final.

    Within another one it is the same question. A signal that this process was started to ignore stays ignored.
    """
    if _questions or threading.current_thread() is not threading.main_thread():
        yield _questions[0].is_set if _questions else threading.Event().is_set
        return
    asked = threading.Event()

    def ask(signum: int, frame: object) -> None:
        if asked.is_set():
            _end_now(signum, frame)
        _heard.append(signum)
        asked.set()

    heard = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) not in (signal.SIG_IGN, None)]
    before = {s: signal.signal(s, ask) for s in heard}
    _questions.append(asked)
    try:
        yield asked.is_set
    finally:
        _questions.clear()
        for s, handler in before.items():
            signal.signal(s, handler)


def _end_now(signum: int, frame: object) -> NoReturn:
    _heard.append(signum)
    raise KeyboardInterrupt
