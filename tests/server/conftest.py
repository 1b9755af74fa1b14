"""A server in a thread of this process, with small trained models."""

from __future__ import annotations

import json
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import lmlab
from lmlab.learn.run import Run, opened
from lmlab.server.app import Api
from lmlab.server.limits import Limits
from lmlab.server.served_model import ServedModel

WORDS = [
    "the",
    "cat",
    "and",
    "dog",
    "sat",
    "on",
    "a",
    "mat",
    "über",
    "Zäune",
    "läuft",
    "世界",
    "often",
    "while",
    "rain",
    "falls",
]
MODELS = {"gpt": {"layers": 1, "width": 32, "context": 24}, "lstm": {"width": 16}, "ngram": {"order": 4}}


@dataclass
class Client:
    """Speaks JSON with a server."""

    url: str
    models: dict[str, ServedModel]

    def ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Return status and document of a GET, or of a POST if there is a body (JSON, or bytes as they are)."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, _document(response)
        except urllib.error.HTTPError as error:
            with error:  # it holds the connection
                return error.code, _document(error)

    def complete(self, model: str, prompt: Any, **fields: Any) -> dict[str, Any]:
        """Return the answer to a completion request that must succeed."""
        status, answer = self.ask("/v1/completions", {"model": model, "prompt": prompt, **fields})
        assert status == 200, answer
        return answer

    def stream(self, **fields: Any) -> list[Any]:
        """Return the events of a stream; the last is the string [DONE]."""
        data = json.dumps({**fields, "stream": True}).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.url + "/v1/completions", data=data), timeout=60
        ) as response:
            lines = [line.decode().strip() for line in response]
        found = [line.removeprefix("data: ") for line in lines if line]
        return [one if one == "[DONE]" else json.loads(one) for one in found]


def _document(response: Any) -> Any:
    data = response.read()
    return json.loads(data) if "json" in response.headers.get("content-type", "") else data.decode()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder, rng = tmp_path_factory.mktemp("served"), random.Random(0)
    text = folder / "text.txt"
    text.write_text("\n".join(" ".join(rng.choices(WORDS, k=8)) for _ in range(300)), encoding="utf-8")
    for name, settings in MODELS.items():
        budget = {} if name == "ngram" else {"budget": "20steps"}
        tokenizer = {"gpt": "bpe:300", "lstm": "byte", "ngram": "char"}[name]
        lmlab.train(name, text, out=folder / name, tokenizer=tokenizer, settings=settings, **budget)
    lmlab.train("ngram", text, out=folder / "words", tokenizer="words:12", settings={"order": 2})
    return {name: opened(folder / name) for name in [*MODELS, "words"]}


@pytest.fixture(scope="session")
def serving(runs: dict[str, Run]) -> Iterator[Callable[..., Client]]:
    """Starts servers: serving(limits, api_key=...) returns a client of it."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(limits: Limits | None = None, **options: Any) -> Client:
        limits = limits or Limits()
        models = {name: ServedModel(name, run, run.load("cpu"), limits) for name, run in runs.items()}
        api = Api(models, limits, **{"max_rows": 16, **options})
        server = uvicorn.Server(uvicorn.Config(api.app, port=0, log_level="warning"))
        server.install_signal_handlers = lambda: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.01)
        servers.append((server, thread))
        port = server.servers[0].sockets[0].getsockname()[1]
        return Client(f"http://127.0.0.1:{port}", models)

    yield start
    for server, _ in servers:
        server.should_exit = True
    for _, thread in servers:
        thread.join(30)


@pytest.fixture(scope="session")
def client(serving: Callable[..., Client]) -> Client:
    return serving()


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    return tmp_path / "text.txt"
