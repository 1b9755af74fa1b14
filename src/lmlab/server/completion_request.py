"""The body of a completion request, read strictly: a wrong or unknown field is refused by its name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lmlab.server.errors import ApiError
from lmlab.server.limits import Limits

USUAL_TOKENS = 16  # of a completion for which the client names no number
# Fields of the protocol that would change the distribution in a way that lmlab does not do. Their neutral values are accepted.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "suffix": (None, ""),
    "logit_bias": (None, {}),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
}
SHORT = 60  # characters of what a message repeats of a request
IGNORED = ("user", "metadata", "store")


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """The validated fields of POST /v1/completions.

    Attributes:
        prompts: strings, or token ids.
        logprobs: the number of alternatives per token; None: no log-probabilities.
    """

    model: str
    prompts: tuple[str | tuple[int, ...], ...]
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int | None
    min_p: float | None
    n: int
    best_of: int
    stop: tuple[str, ...]
    seed: int | None
    echo: bool
    logprobs: int | None
    stream: bool
    include_usage: bool

    @classmethod
    def parse(cls, body: Any, limits: Limits) -> CompletionRequest:
        """Return the request in a JSON document.

        Raises:
            ApiError: a field is missing, unknown or out of range.
        """
        fields = Fields(body)
        for name, neutral in UNSUPPORTED.items():
            if fields.take(name) not in neutral:
                raise ApiError(400, f"{name} is not supported; leave it out", param=name, code="unsupported_parameter")
        for name in IGNORED:
            fields.take(name)
        stream = fields.boolean("stream")
        options = fields.take("stream_options")
        n = fields.whole("n", 1, 1, limits.completions)
        request = cls(
            model=fields.string("model"),
            prompts=_prompts(fields.take("prompt"), limits),
            max_tokens=fields.whole("max_tokens", USUAL_TOKENS, 0, limits.max_tokens),
            temperature=fields.number("temperature", 1.0, 0.0, 100.0),
            top_p=fields.number("top_p", 1.0, 0.0, 1.0, above=True),
            top_k=_top_k(fields.whole("top_k", None, -1, 1 << 31)),
            min_p=fields.number("min_p", None, 0.0, 1.0),
            n=n,
            best_of=fields.whole("best_of", n, 1, limits.completions),
            stop=_stop(fields.take("stop"), limits),
            seed=fields.whole("seed", None, 0, (1 << 63) - 1),
            echo=fields.boolean("echo"),
            logprobs=_alternatives(fields, limits),
            stream=stream,
            include_usage=_include_usage(options, stream),
        )
        fields.refuse_the_rest()
        request._check_together(limits)
        return request

    def _check_together(self, limits: Limits) -> None:
        if self.best_of < self.n:
            raise ApiError(400, f"best_of is at least n, {self.n}; got {self.best_of}", param="best_of")
        if self.stream and self.best_of > self.n:
            raise ApiError(
                400, "a stream cannot choose the best; leave best_of out, or set stream to false", param="best_of"
            )
        if self.n > 1 and self.temperature == 0:
            raise ApiError(400, "temperature 0 always finds the same text; set it above 0, or n to 1", param="n")
        if self.max_tokens == 0 and not self.echo:
            raise ApiError(
                400, "max_tokens 0 is for echo; set echo to true, or max_tokens to 1 or more", param="max_tokens"
            )
        if len(self.prompts) * self.best_of > limits.completions:
            message = (
                f"prompts times best_of is at most {limits.completions}; got {len(self.prompts)} times {self.best_of}"
            )
            raise ApiError(400, message, param="prompt")


def parse_json(data: bytes) -> Any:
    """Return the document of a request body."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON in UTF-8: {error}", code="body-not-json") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


class Fields:
    """Takes the fields of a JSON object one by one, with their types and ranges. null counts as absent."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, dict):
            raise ApiError(400, "the body is a JSON object", code="body-not-an-object")
        self._rest = dict(body)

    def take(self, name: str) -> Any:
        """Return the value of a field of any type; None if it is absent."""
        return self._rest.pop(name, None)

    def boolean(self, name: str) -> bool:
        """Return a field that is true or false; absent: false."""
        value = self.take(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise ApiError(400, f"{name} is true or false; got {_short(value)}", param=name)
        return value

    def string(self, name: str) -> str:
        """Return a field that is a string and must be there."""
        value = self.take(name)
        if not isinstance(value, str):
            raise ApiError(400, f"{name} is a string; got {_short(value)}", param=name)
        check_unicode(value, name)
        return value

    def whole(self, name: str, default: Any, least: int, most: int) -> Any:
        """Return a field that is a whole number in a range."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ApiError(400, f"{name} is a whole number from {least} to {most}; got {_short(value)}", param=name)
        return value

    def number(self, name: str, default: Any, least: float, most: float, *, above: bool = False) -> Any:
        """Return a field that is a number in a range. above: the least itself is not allowed."""
        value = self.take(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or (above and value == least):
            raise ApiError(400, f"{name} is a number from {least:g} to {most:g}; got {_short(value)}", param=name)
        return float(value)

    def refuse_the_rest(self) -> None:
        """Raise for a field that nobody took."""
        for name in self._rest:
            param = name if name.isprintable() and len(name) <= SHORT else None  # half a surrogate pair is no JSON
            raise ApiError(400, f"there is no parameter {_short(name)}", param=param, code="unknown_parameter")


def check_unicode(text: str, param: str) -> None:
    """Raise for half a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{param} is not valid Unicode at character {error.start}"
        raise ApiError(400, message, param=param, code="text-not-unicode") from None


def token_ids(value: Any, param: str) -> tuple[int, ...] | None:
    """Return a list of token ids; None if it is something else."""
    if isinstance(value, list) and all(isinstance(id, int) and not isinstance(id, bool) for id in value):
        return tuple(value)
    return None


def _prompts(value: Any, limits: Limits) -> tuple[str | tuple[int, ...], ...]:
    """One string, a list of strings, one list of ids, or a list of lists of ids. An absent prompt is empty."""
    if value is None:
        return ("",)
    if isinstance(value, str):
        check_unicode(value, "prompt")
        return (value,)
    ids = token_ids(value, "prompt")
    if ids:
        return (ids,)
    found: list[str | tuple[int, ...]] = []
    for one in value if isinstance(value, list) else [None]:
        ids = token_ids(one, "prompt")
        if isinstance(one, str):
            check_unicode(one, "prompt")
            found.append(one)
        elif ids is not None:
            found.append(ids)
        else:
            message = "prompt is a string, a list of strings, a list of token ids, or a list of lists of token ids"
            raise ApiError(400, message, param="prompt")
    if not found:
        raise ApiError(400, "prompt is an empty list; send at least one prompt, which may be empty", param="prompt")
    if len(found) > limits.completions:
        raise ApiError(400, f"at most {limits.completions} prompts in a request; got {len(found)}", param="prompt")
    return tuple(found)


def _stop(value: Any, limits: Limits) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise ApiError(400, "stop is a string or a list of strings", param="stop")
    if len(stops) > limits.stops or any(len(stop) > limits.stop_characters for stop in stops):
        message = f"stop has at most {limits.stops} strings of at most {limits.stop_characters} characters"
        raise ApiError(400, message, param="stop")
    for stop in stops:
        check_unicode(stop, "stop")
    return tuple(stop for stop in stops if stop)


def _top_k(value: int | None) -> int | None:
    """-1 and 0 stand for no limit in other servers."""
    return value if value is not None and value > 0 else None


def _alternatives(fields: Fields, limits: Limits) -> int | None:
    value = fields.take("logprobs")
    if isinstance(value, bool):  # of the chat protocol
        return 1 if value else None
    return Fields({"logprobs": value}).whole("logprobs", None, 0, limits.logprobs)


def _include_usage(options: Any, stream: bool) -> bool:
    if options is None:
        return False
    if not isinstance(options, dict):
        raise ApiError(400, "stream_options is an object", param="stream_options")
    if not stream:
        raise ApiError(400, "stream_options is for streams; set stream to true", param="stream_options")
    return Fields(options).boolean("include_usage")


def _short(value: Any) -> str:
    text = json.dumps(value, default=str) if not isinstance(value, str) else repr(value)
    return text if len(text) <= SHORT else text[: SHORT - 3] + "..."
