"""`lmlab.serve`: serves trained models over HTTP."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake
from lmlab.models.registry import kind_of
from lmlab.server.limits import Limits

if TYPE_CHECKING:
    from lmlab.learn.run import Run

GRACE_S = 30  # that running requests have to finish when the server is told to end


def serve(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    without_key: bool = False,
    max_rows: int = 64,
    max_tokens: int = Limits.max_tokens,
    max_prompt: int = Limits.prompt_tokens,
    queue: int = Limits.queued,
    timeout: float = Limits.request_s,
    device: str = "auto",
    precision: str = "float32",
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve trained language models over HTTP, in the protocol of OpenAI's completions, until SIGINT or SIGTERM.

    Requests that run when the signal comes are finished, within half a minute.

    Args:
        runs: one or several runs, or their folders. A model's name is that of its folder.
        host: the address to listen on. Other computers can reach any but a loopback address.
        port: the port; 0: a free one.
        api_key: what clients must send as a bearer token.
        without_key: allow an address that other computers can reach without an API key.
        max_rows: completions of one model that are decoded side by side; others wait.
        max_tokens: the most tokens of one completion.
        max_prompt: the most tokens of one prompt.
        queue: the completions that may wait or run, of all clients together.
        timeout: the seconds that one request may take.
        device: "auto", "cpu", "cuda" or "mps".
        precision: of the weights while decoding, "float32" or "bf16". Scores are always float32.
        ready: called with the URL when the server listens.
    """
    if api_key is None and not without_key and not _is_loopback(host):
        raise Mistake(
            "other computers can reach {host}; set {api_key}, or {without_key} if anybody may use the models",
            code="serve-without-key",
            host=host,
            api_key=None,
            without_key=True,
        )
    limits = Limits(max_tokens=max_tokens, prompt_tokens=max_prompt, queued=queue, request_s=timeout)
    if api_key is not None and not ((api_key := api_key.strip()) and api_key.isascii() and api_key.isprintable()):
        raise Mistake(
            "{api_key} is a secret string of ASCII characters; it is empty or has others",
            code="api-key-empty",
            api_key=None,
        )
    try:
        import uvicorn

        from lmlab.server.app import Api
    except ImportError as error:
        raise Mistake(f"serving needs {error.name}: pip install 'lmlab[serve]'", code="serve-extra-missing") from None
    from lmlab.hardware.threads import fastest_threads

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        _bind(listener, host, port)
        with fastest_threads():
            named = _named([runs] if isinstance(runs, str | Path) or not isinstance(runs, Sequence) else runs)
            models = _opened(named, device, limits)
            api = Api(models, limits, api_key=api_key, max_rows=max_rows, precision=precision)
            config = uvicorn.Config(
                api.app,
                access_log=False,
                log_level="warning",
                server_header=False,
                http="h11",
                ws="none",
                timeout_graceful_shutdown=GRACE_S,
                timeout_keep_alive=30,
            )
            server = uvicorn.Server(config)
            if ready is not None:
                shown = f"[{host}]" if ":" in host else host
                ready(f"http://{shown}:{listener.getsockname()[1]}")
            try:
                with _ended_by_signals(server):
                    server.run(sockets=[listener])
            finally:
                api.end()  # uvicorn does not when Ctrl-C came twice; a process cannot end while a thread runs a model


@contextlib.contextmanager
def _ended_by_signals(server: Any) -> Iterator[None]:
    """SIGINT and SIGTERM end the server in order, and the process goes on after it. uvicorn's own way ends the process."""

    @contextlib.contextmanager
    def no_capture() -> Iterator[None]:
        yield

    server.capture_signals = no_capture
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        if server.should_exit and number == signal.SIGINT:
            server.force_exit = True  # Ctrl-C a second time
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(listener: socket.socket, host: str, port: int) -> None:
    """Take the address before models are loaded, so that a port that is taken is known at once."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OverflowError:
        raise Mistake(
            f"{{port}} is a whole number from 0 to 65535; got {port}", code="port-out-of-range", port=None
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Mistake(
            f"cannot listen on {host}, port {port}: {reason}; choose another {{port}} or {{host}}",
            code="cannot-listen",
            host=None,
            port=None,
        ) from None


def _named(runs: Sequence[Run | str | Path]) -> dict[str, Run]:
    from lmlab.learn.run import opened

    if not runs:
        raise Mistake("no run is named; name the folder of a trained model", code="serve-nothing")
    found: dict[str, Run] = {}
    for each in runs:
        run = opened(each)
        name = Path(run.folder).resolve().name
        if name in found:
            raise Mistake(
                f"two runs are called {name}; clients could not tell them apart: rename one folder", code="served-twice"
            )
        found[name] = run
    return found


def _opened(runs: dict[str, Run], device: str, limits: Limits) -> dict[str, Any]:
    from lmlab.interface import LanguageModel
    from lmlab.server.served_model import ServedModel

    models = {}
    for name, run in runs.items():
        model = run.load(device)
        if not isinstance(model, LanguageModel) or kind_of(run.record.model.name).task is not None:
            raise Mistake(
                f"{name} is a {run.record.model.name}, which continues no text; serve language models",
                code="serve-no-language-model",
            )
        models[name] = ServedModel(name, run, model, limits)
    return models
