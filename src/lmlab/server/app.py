"""The routes of the server.

No request names a path, and nothing that a request does changes a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lmlab.config import Mistake
from lmlab.server.completion import Completion
from lmlab.server.completion_request import CompletionRequest, Fields, parse_json, token_ids
from lmlab.server.errors import ApiError
from lmlab.server.front_page import front_page
from lmlab.server.limits import Limits
from lmlab.server.metrics import Metrics
from lmlab.server.openapi import document
from lmlab.server.served_model import BEGIN, ServedModel
from lmlab.server.worker import Worker
from lmlab.version import __version__

LOG = logging.getLogger("lmlab.server")
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """The served models and what answers for them.

    Args:
        models: by name; the first answers where a request may leave the name out.
        api_key: what clients send as a bearer token on every route but /health; None: nothing.
    """

    def __init__(
        self,
        models: Mapping[str, ServedModel],
        limits: Limits,
        *,
        api_key: str | None = None,
        max_rows: int = 64,
        precision: str = "float32",
    ) -> None:
        self._models, self._limits, self._api_key = models, limits, api_key
        self._workers = {
            name: Worker(served.model, served.tokenizer, limits, max_rows, precision) for name, served in models.items()
        }
        workers = self._workers.values()
        self._metrics = Metrics(lambda: sum(w.running for w in workers), lambda: sum(w.queued for w in workers))
        self._certifying = asyncio.Semaphore(1)
        self.ready = True

    @property
    def app(self) -> Starlette:
        """The ASGI application."""
        routes: dict[str, tuple[str, Callable[[Request], Awaitable[Response]]]] = {
            "/": ("GET", self._page),
            "/health": ("GET", self._health),
            "/version": ("GET", self._version),
            "/metrics": ("GET", self._show_metrics),
            "/openapi.json": ("GET", self._openapi),
            "/tokenizer_info": ("GET", self._tokenizer_info),
            "/tokenize": ("POST", self._tokenize),
            "/detokenize": ("POST", self._detokenize),
            "/v1/models": ("GET", self._list_models),
            "/v1/models/{name}": ("GET", self._model),
            "/v1/completions": ("POST", self._completions),
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/score": ("POST", self._score),
        }
        app = Starlette(
            routes=[Route(path, self._guarded(path, do), methods=[method]) for path, (method, do) in routes.items()],
            exception_handlers={HTTPException: self._http_error, Exception: self._unexpected},
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False  # a redirect would repeat the Host header that the client made up
        return app

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(self.end)

    def end(self) -> None:
        """Let the threads of all models end."""
        for worker in self._workers.values():
            worker.end()

    def _guarded(self, path: str, do: Handler) -> Handler:
        """The handler of a route: checks the key, counts responses, and writes errors as JSON."""

        async def handle(request: Request) -> Response:
            try:
                _check_framing(request)
                if path != "/health":
                    self._check_key(request)
                response = await do(request)
            except ApiError as error:
                response = _error(error)
            except Mistake as mistake:
                response = _error(ApiError.of(mistake))
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody reads it
            self._metrics.responded(path, response.status_code)
            return response

        return handle

    def _check_key(self, request: Request) -> None:
        if self._api_key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._api_key.encode()):
            raise ApiError(401, "this server wants its API key as a bearer token", code="invalid_api_key")

    async def _http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        advice = "; /openapi.json lists the routes" if error.status_code == 404 else ""
        found = _error(
            ApiError(error.status_code, f"{error.detail}: {request.method} {request.scope['path'][:200]}{advice}")
        )
        found.headers.update(error.headers or {})
        self._metrics.responded("other", error.status_code)
        return found

    async def _unexpected(self, request: Request, error: Exception) -> Response:
        LOG.exception("a bug of the server", exc_info=error)
        return _error(ApiError(500, "a bug of the server; its log says more", code="internal_error"))

    async def _body(self, request: Request) -> Any:
        """Return the JSON document of a request, read within the limits of size and time."""
        length = request.headers.get("content-length", "0")
        too_large = ApiError(413, f"a body has at most {self._limits.body_bytes:,} bytes", code="body_too_large")
        if length.isdigit() and int(length) > self._limits.body_bytes:
            raise too_large
        data = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for piece in request.stream():
                    data += piece
                    if len(data) > self._limits.body_bytes:
                        raise too_large
        except TimeoutError:
            message = f"the body did not arrive within {self._limits.body_s:g} s"
            raise ApiError(408, message, code="body_too_slow", closes=True) from None
        return parse_json(bytes(data))

    def _served(self, name: str | None) -> ServedModel:
        if name is None:
            return next(iter(self._models.values()))
        if name not in self._models:
            there = ", ".join(self._models)
            raise ApiError(
                404, f"there is no model {name[:60]!r}; there is: {there}", param="model", code="model_not_found"
            )
        return self._models[name]

    async def _completions(self, request: Request) -> Response:
        asked = CompletionRequest.parse(await self._body(request), self._limits)
        served = self._served(asked.model)
        prompts = await run_in_threadpool(lambda: [served.prompt(prompt) for prompt in asked.prompts])
        completion = Completion(served, self._workers[served.name], asked, prompts, self._metrics)
        if not asked.stream:
            return JSONResponse(await _unless_gone(request, completion.whole()))
        pieces = completion.pieces()
        first = await _unless_gone(request, anext(pieces))  # a full queue is refused before the stream begins
        events = _events(completion, first, pieces, asked.include_usage)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return _Stream(completion, events, media_type="text/event-stream", headers=headers)

    async def _chat(self, request: Request) -> Response:
        fields = Fields(await self._body(request))
        served = self._served(fields.string("model"))
        message = f"{served.name} has no chat template; use /v1/completions"
        raise ApiError(400, message, param="messages", code="no_chat_template")

    async def _score(self, request: Request) -> Response:
        fields = Fields(await self._body(request))
        served, text = self._served(fields.string("model")), fields.string("text")
        fields.refuse_the_rest()
        if not text or len(text.encode()) > self._limits.scored_bytes:
            message = f"text has 1 to {self._limits.scored_bytes:,} bytes; got {len(text.encode()):,}"
            raise ApiError(400, message, param="text")
        return JSONResponse(await _unless_gone(request, self._certified(served, text)))

    async def _certified(self, served: ServedModel, text: str) -> dict[str, Any]:
        async with self._certifying:  # one at a time: it takes seconds, and completions go on
            return await run_in_threadpool(served.certified, text)

    async def _list_models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [served.card() for served in self._models.values()]})

    async def _model(self, request: Request) -> Response:
        return JSONResponse(self._served(request.path_params["name"]).card())

    async def _tokenizer_info(self, request: Request) -> Response:
        return JSONResponse(self._served(request.query_params.get("model")).tokenizer_info())

    async def _tokenize(self, request: Request) -> Response:
        fields = Fields(await self._body(request))
        name, text = fields.take("model"), fields.string("prompt")
        fields.boolean("add_special_tokens")  # nothing is ever added
        strings = fields.boolean("return_token_strs")
        fields.refuse_the_rest()
        served = self._served(_name(name))
        # Inside a text the spelling of the begin symbol is text like any other.
        ids = [served.begin_id] if text == BEGIN else list((await run_in_threadpool(served.prompt, text)).ids)
        found = {"count": len(ids), "max_model_len": served.max_model_len, "tokens": ids}
        return JSONResponse({**found, "token_strs": [served.token_text(id) for id in ids]} if strings else found)

    async def _detokenize(self, request: Request) -> Response:
        fields = Fields(await self._body(request))
        name, ids = fields.take("model"), token_ids(fields.take("tokens"), "tokens")
        fields.refuse_the_rest()
        if ids is None:
            raise ApiError(400, "tokens is a list of token ids", param="tokens")
        return JSONResponse({"prompt": self._served(_name(name)).prompt(ids).text})

    async def _health(self, request: Request) -> Response:
        if not all(worker.works for worker in self._workers.values()):
            raise ApiError(503, "a model does not answer any more; start the server again", code="worker_died")
        return JSONResponse({"status": "ok"})

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"version": __version__})

    async def _show_metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(document(self._limits, needs_key=self._api_key is not None))

    async def _page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(front_page(list(self._models.values())), headers=headers)


def _check_framing(request: Request) -> None:
    """Raise for a body of two lengths: a proxy may take what follows the shorter one for another request."""
    if "content-length" in request.headers and "transfer-encoding" in request.headers:
        message = "a body has a Content-Length or a Transfer-Encoding, not both"
        raise ApiError(400, message, code="two_lengths", closes=True)


def _name(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ApiError(400, "model is a string", param="model")


def _error(error: ApiError) -> JSONResponse:
    return JSONResponse(error.body, status_code=error.status, headers=error.headers)


class _Stream(StreamingResponse):
    """Gives the work up however it ends. Its events cannot do that where the client went before the first was sent."""

    def __init__(self, completion: Completion, events: AsyncIterator[bytes], **options: Any) -> None:
        super().__init__(events, **options)
        self._completion = completion

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._completion.give_up()


async def _unless_gone(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of the work; give it up as soon as the client goes away."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await each


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(
    completion: Completion, first: Any, pieces: AsyncIterator[Any], include_usage: bool
) -> AsyncIterator[bytes]:
    """The server-sent events of a stream. An error becomes an event, because the status was sent already."""
    try:
        yield _event(completion.chunk(first))
        async for piece in pieces:
            yield _event(completion.chunk(piece))
        if include_usage:
            yield _event(completion.last_chunk())
    except ApiError as error:
        yield _event(error.body)
    finally:
        await pieces.aclose()  # type: ignore[attr-defined]  # an async generator; gives the work up if the client went
    yield b"data: [DONE]\n\n"


def _event(document: Any) -> bytes:
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"
