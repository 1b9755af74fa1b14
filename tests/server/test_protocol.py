"""Errors, limits, keys and the other routes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lmlab.server.limits import Limits

GOOD = {"model": "gpt", "prompt": "the"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "gpt", "max_tokens": -1}, "max_tokens"),
        ({"model": "gpt", "max_tokens": True}, "max_tokens"),
        ({"model": "gpt", "temperature": -0.5}, "temperature"),
        ({"model": "gpt", "top_p": 0}, "top_p"),
        ({"model": "gpt", "prompt": [[0], "x", 3]}, "prompt"),
        ({"model": "gpt", "prompt": []}, "prompt"),
        ({"model": "gpt", "prompt": [99999]}, "prompt"),
        ({"model": "gpt", "prompt": "\ud800"}, "prompt"),
        ({"model": "gpt", "logit_bias": {"3": 1}}, "logit_bias"),
        ({"model": "gpt", "max_token": 3}, "max_token"),
        ({"model": "gpt", "stop": [1]}, "stop"),
        ({"model": "gpt", "n": 3, "best_of": 2}, "best_of"),
        ({"model": "gpt", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "x"}, "model"),
        ({"model": "gpt", "n": 2, "temperature": 0}, "n"),
        ({"model": "gpt", "temperature": 10**400}, "temperature"),  # no float holds it
        ({"model": "gpt", "top_p": -(10**400)}, "top_p"),
        ({"model": "gpt", "\ud800": 1}, None),  # no UTF-8 spells it, in an answer either
        ({"model": "gpt", "stop": False}, "stop"),
        ({"model": "gpt", "stop": ["a"] * 33}, "stop"),
        ({"model": "gpt", "stop": "a" * 257}, "stop"),
        ({"model": "gpt", "prompt": "a" * 9000, "echo": True, "n": 1000}, "prompt"),
        ({"model": "gpt", "max_tokens": 10_000, "logprobs": 100, "n": 10}, "max_tokens"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(client: Any, body: Any, param: str | None) -> None:
    status, answer = client.ask("/v1/completions", body)
    assert status == 400
    assert answer["error"]["param"] == param
    assert answer["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"model": NaN}', b"[" * 100_000, b"3"])
def test_a_body_that_is_no_json_object_is_refused(client: Any, body: bytes) -> None:
    assert client.ask("/v1/completions", body)[0] == 400


def test_an_unknown_model_is_not_found(client: Any) -> None:
    status, answer = client.ask("/v1/completions", {"model": "../gpt", "prompt": "x"})
    assert status == 404
    assert "gpt" in answer["error"]["message"]


def test_null_and_neutral_fields_count_as_absent(client: Any) -> None:
    neutral = {"logit_bias": {}, "presence_penalty": 0, "suffix": None, "user": "me", "max_tokens": None, "top_k": -1}
    answer = client.complete("gpt", "the", **neutral)
    assert answer["usage"]["completion_tokens"] == 16


def test_token_ids_go_there_and_back(client: Any) -> None:
    text = "über 世界 <|begin|> the"
    _, found = client.ask("/tokenize", {"model": "gpt", "prompt": text, "return_token_strs": True})
    assert found["count"] == len(found["tokens"]) == len(found["token_strs"])
    assert client.ask("/detokenize", {"model": "gpt", "tokens": found["tokens"]})[1] == {"prompt": text}


def test_the_begin_symbol_has_an_id_of_its_own(client: Any) -> None:
    """lm-eval takes id 0 and an empty string for a missing begin symbol."""
    info = client.ask("/tokenizer_info?model=gpt")[1]
    ids = client.ask("/tokenize", {"model": "gpt", "prompt": info["bos_token"]})[1]["tokens"]
    assert ids == [info["bos_token_id"]] == [info["vocab_size"]]
    assert info["eos_token"] is None


def test_models_are_listed(client: Any) -> None:
    listed = client.ask("/v1/models")[1]["data"]
    assert [model["id"] for model in listed] == ["gpt", "lstm", "ngram", "words"]
    assert client.ask("/v1/models/ngram")[1]["kind"] == "ngram"
    assert client.ask("/v1/models/none")[0] == 404


def test_a_score_comes_with_its_certificate(client: Any, runs: Any) -> None:
    import lmlab

    text = "the cat sat on a mat while rain falls down. " * 8
    status, found = client.ask("/v1/score", {"model": "lstm", "text": text})
    assert status == 200
    assert found["bits_per_byte"] == lmlab.evaluate(runs["lstm"], lmlab.strings(text), device="cpu").bits_per_byte
    assert found["certificate"]


def test_chat_is_refused_with_the_reason(client: Any) -> None:
    status, answer = client.ask("/v1/chat/completions", {"model": "gpt", "messages": []})
    assert status == 400
    assert "chat template" in answer["error"]["message"]


def test_routes_for_operators_answer(client: Any) -> None:
    assert client.ask("/health") == (200, {"status": "ok"})
    assert "lmlab_generation_tokens_total" in client.ask("/metrics")[1]
    assert "<main>" in client.ask("/")[1]
    assert client.ask("/openapi.json")[1]["paths"].keys() >= {"/v1/completions", "/v1/score"}
    assert client.ask("/nothing")[1]["error"]["type"] == "not_found_error"
    assert client.ask("/v1/completions")[0] == 405


def test_every_route_but_health_wants_the_key(serving: Callable[..., Any]) -> None:
    client = serving(api_key="secret")
    assert client.ask("/health")[0] == 200
    for path, body in [
        ("/v1/models", None),
        ("/", None),
        ("/metrics", None),
        ("/v1/completions", GOOD),
        ("/tokenize", {}),
    ]:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert client.ask(path, body, headers)[0] == 401
    assert client.ask("/v1/completions", GOOD, {"Authorization": "Bearer secret"})[0] == 200


@pytest.fixture(scope="module")
def strict(serving: Callable[..., Any]) -> Any:
    limits = Limits(prompt_tokens=50, max_tokens=40, queued=3, body_bytes=2000, body_s=0.3, request_s=30, completions=4)
    return serving(limits, max_rows=1)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**GOOD, "max_tokens": 41}, 400),
        ({**GOOD, "prompt": "a" * 100}, 400),
        ({**GOOD, "prompt": ["a", "b", "c"], "n": 2}, 400),
        ({**GOOD, "prompt": "a" * 3000}, 413),
        ({**GOOD, "prompt": ["a", "b", "c", "d"]}, 429),
    ],
)
def test_each_limit_has_its_status(strict: Any, body: Any, status: int) -> None:
    found, answer = strict.ask("/v1/completions", body)
    assert found == status
    assert answer["error"]["message"]


def test_a_full_queue_says_when_to_come_back_and_then_takes_requests_again(strict: Any) -> None:
    import urllib.error
    import urllib.request

    body = json.dumps({**GOOD, "prompt": ["a", "b", "c", "d"]}).encode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(strict.url + "/v1/completions", data=body))
    with refused.value as error:
        assert error.headers["Retry-After"] == "1"
    assert strict.ask("/v1/completions", GOOD)[0] == 200


def test_a_body_that_comes_too_slowly_is_given_up(strict: Any) -> None:
    host, port = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert b" 408 " in connection.recv(4096)


def test_a_request_that_takes_too_long_is_given_up(serving: Callable[..., Any]) -> None:
    client = serving(Limits(request_s=0.05))
    status, answer = client.ask("/v1/completions", {**GOOD, "max_tokens": 10_000})
    assert status == 503
    assert answer["error"]["code"] == "timeout"
    events = client.stream(**GOOD, echo=True, max_tokens=10_000)  # the prompt is there at once
    assert events[-1] == "[DONE]"
    assert events[-2]["error"]["code"] == "timeout"


def test_a_client_that_goes_away_stops_costing(serving: Callable[..., Any]) -> None:
    client = serving()
    host, port = client.url.removeprefix("http://").split(":")
    body = json.dumps({**GOOD, "max_tokens": 16_000}).encode()
    streamed = json.dumps({**GOOD, "max_tokens": 16_000, "stream": True}).encode()
    for data in (body, streamed):
        connection = socket.create_connection((host, int(port)), timeout=10)
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)
        while "lmlab_requests_running 1.0" not in client.ask("/metrics")[1]:
            pass
        connection.close()
        waited = threading.Event()
        for _ in range(200):
            if "lmlab_requests_queued 0.0" in client.ask("/metrics")[1]:
                break
            waited.wait(0.02)
        else:
            raise AssertionError("the completion still runs")


def test_a_model_that_fails_fails_its_own_requests_alone(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serving()
    served = client.models["lstm"]

    def broken(*given: Any, **named: Any) -> Any:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(type(served.model), "begin_with", broken)
        patch.setattr(type(served.model), "begin", broken)
        status, answer = client.ask("/v1/completions", {"model": "lstm", "prompt": "a", "max_tokens": 2})
        assert status == 500
        assert answer["error"]["type"] == "server_error"
        assert client.ask("/v1/completions", {"model": "ngram", "prompt": "a", "max_tokens": 2})[0] == 200
    assert client.ask("/v1/completions", {"model": "lstm", "prompt": "a", "max_tokens": 2})[0] == 200
