"""The thread of a model goes on after errors; where it cannot, every client is told."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest

from lmlab.engine import Request
from lmlab.server.errors import ApiError
from lmlab.server.limits import Limits
from lmlab.server.worker import Call, Worker


class Waiting:
    """A call, and what came back of it."""

    def __init__(self, tokens: int = 3) -> None:
        self.events, self.errors, self.over = list[Any](), list[ApiError](), threading.Event()
        requests = deque([Request("the", max_tokens=tokens)])
        self.call = Call(requests, (), 0, self._event, lambda scores: None, self._error, size=1)

    def _event(self, event: Any) -> None:
        self.events.append(event)
        if event.finish is not None:
            self.over.set()

    def _error(self, error: ApiError) -> None:
        self.errors.append(error)
        self.over.set()


@pytest.fixture
def worker(runs: Any) -> Any:
    run = runs["ngram"]
    found = Worker(run.load("cpu"), run.tokenizer, Limits(), max_rows=2, precision="float32")
    yield found
    found.end()


def finished(worker: Worker) -> Waiting:
    one = Waiting()
    worker.submit(one.call)
    assert one.over.wait(30)
    return one


@pytest.mark.parametrize("place", ["submit", "step"])
def test_an_error_of_the_engine_fails_its_call_and_the_next_is_served(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(worker.engine, place, broken)
        assert [error.status for error in finished(worker).errors] == [500]
    assert not finished(worker).errors
    assert worker.queued == worker.running == 0


def test_an_error_of_the_worker_itself_fails_the_calls_and_the_next_is_served(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(worker, "_score_a_piece", broken)
        assert [error.status for error in finished(worker).errors] == [500]
    assert not finished(worker).errors
    assert worker.queued == worker.running == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_call_waits_for_a_thread_that_died(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying() -> None:
        raise SystemExit

    monkeypatch.setattr(worker, "_feed", dying)
    assert [error.status for error in finished(worker).errors] == [503]
    worker._thread.join(30)
    assert not worker.works
    with pytest.raises(ApiError) as refused:
        worker.submit(Waiting().call)
    assert refused.value.status == 503
