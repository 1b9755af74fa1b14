"""Signal handling that defers SIGINT (Ctrl-C) and SIGTERM to the end of a training step, so that a checkpoint can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

_heard: list[int] = []  # signals received since `listening` began
_questions: list[threading.Event] = []  # the event of the active `interruptible`, if any


@contextmanager
def listening() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C while a program runs, and record which signals arrived."""
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
    """Whether a signal asked this program to end, even if a library swallowed the KeyboardInterrupt."""
    return bool(_heard)


def killed() -> bool:
    """Whether SIGTERM arrived."""
    return signal.SIGTERM in _heard


def exit_code() -> int:
    """Return the exit code of an interrupted program by the convention of shells: 130 after SIGINT, 143 after SIGTERM."""
    return 128 + (_heard[-1] if _heard else signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Defer the first SIGINT or SIGTERM: yield a function that tells whether one arrived. A second signal interrupts at once.

    A nested use yields the function of the outer one. A signal that this process ignores from its start stays ignored.
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
