"""The OpenAPI document of the server."""

from __future__ import annotations

from typing import Any

from lmlab.server.completion_request import USUAL_TOKENS
from lmlab.server.limits import Limits
from lmlab.version import __version__

Schema = dict[str, Any]
STATUS = {
    400: "A field is missing, unknown or out of range",
    401: "The API key is missing or wrong",
    404: "There is no such model",
    408: "The body came too slowly",
    413: "The body is too large",
    429: "Too many completions wait; Retry-After says when to try again",
    500: "The model failed",
    503: "Not finished in time, or the server is shutting down",
}


def document(limits: Limits, *, needs_key: bool) -> Schema:
    """Return the document. needs_key: whether clients must send an API key."""
    paths = {
        "/v1/completions": {"post": _post("Continue prompts", _completion(limits), ["model"])},
        "/v1/score": {"post": _post("Bits per byte of a text, certified", _score(limits), ["model", "text"])},
        "/v1/chat/completions": {"post": _post("Refused: these models have no chat template", _chat(), ["model"])},
        "/tokenize": {"post": _post("Text to token ids", _tokenize(), ["prompt"])},
        "/detokenize": {"post": _post("Token ids to text", _detokenize(), ["tokens"])},
        "/v1/models": {"get": _get("The served models")},
        "/v1/models/{name}": {"get": {**_get("One model", 404), "parameters": [_parameter("name", "path")]}},
        "/tokenizer_info": {"get": {**_get("Special tokens", 404), "parameters": [_parameter("model", "query")]}},
        "/health": {"get": {**_get("Whether the server runs"), "security": []}},
        "/version": {"get": _get("The version of lmlab")},
        "/metrics": {"get": _get("Metrics for Prometheus", media="text/plain")},
        "/openapi.json": {"get": _get("This document")},
        "/": {"get": _get("A page about the server", media="text/html")},
    }
    found: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "lmlab", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": _error()}},
    }
    if needs_key:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"key": []}]
    return found


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _post(summary: str, properties: Schema, required: list[str]) -> Schema:
    media: Schema = {"application/json": {"schema": _object(properties, required)}}
    body = {"required": True, "content": media}
    return {"summary": summary, "requestBody": body, "responses": _responses(*STATUS)}


def _get(summary: str, *errors: int, media: str = "application/json") -> Schema:
    return {"summary": summary, "responses": _responses(401, *errors, media=media)}


def _responses(*errors: int, media: str = "application/json") -> Schema:
    content: Schema = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: Schema = {"200": {"description": "The answer", "content": {media: {}}}}
    return found | {str(status): {"description": STATUS[status], "content": content} for status in errors}


def _parameter(name: str, where: str) -> Schema:
    return {"name": name, "in": where, "required": where == "path", "schema": {"type": "string"}}


def _whole(least: int, most: int, **more: Any) -> Schema:
    return {"type": ["integer", "null"], "minimum": least, "maximum": most, **more}


def _number(least: float, most: float, **more: Any) -> Schema:
    return {"type": ["number", "null"], "minimum": least, "maximum": most, **more}


def _completion(limits: Limits) -> Schema:
    ids = {"type": "array", "items": {"type": "integer"}}
    text = {"type": "string"}
    prompts = [text, {"type": "array", "items": text}, ids, {"type": "array", "items": ids}, {"type": "null"}]
    flag = {"type": ["boolean", "null"]}
    return {
        "model": text,
        "prompt": {"anyOf": prompts},
        "max_tokens": _whole(0, limits.max_tokens, default=USUAL_TOKENS),
        "temperature": _number(0, 100, default=1),
        "top_p": _number(0, 1, default=1),
        "top_k": _whole(-1, 1 << 31),
        "min_p": _number(0, 1),
        "n": _whole(1, limits.completions, default=1),
        "best_of": _whole(1, limits.completions),
        "stop": {"anyOf": [text, {"type": "array", "items": text}, {"type": "null"}]},
        "seed": _whole(0, (1 << 63) - 1),
        "echo": flag,
        "logprobs": _whole(0, limits.logprobs),
        "stream": flag,
        "stream_options": {"type": ["object", "null"], "properties": {"include_usage": flag}},
        "user": {"type": ["string", "null"]},
    }


def _score(limits: Limits) -> Schema:
    return {"model": {"type": "string"}, "text": {"type": "string", "minLength": 1, "maxLength": limits.scored_bytes}}


def _chat() -> Schema:
    return {"model": {"type": "string"}, "messages": {"type": "array", "items": {"type": "object"}}}


def _tokenize() -> Schema:
    optional = {"add_special_tokens": {"type": ["boolean", "null"]}, "return_token_strs": {"type": ["boolean", "null"]}}
    return {"model": {"type": ["string", "null"]}, "prompt": {"type": "string"}, **optional}


def _detokenize() -> Schema:
    tokens = {"type": "array", "items": {"type": "integer"}}
    return {"model": {"type": ["string", "null"]}, "tokens": tokens}


def _error() -> Schema:
    text = {"type": ["string", "null"]}
    error = {"message": {"type": "string"}, "type": {"type": "string"}, "param": text, "code": text}
    return {"type": "object", "properties": {"error": {"type": "object", "properties": error, "required": list(error)}}}
