"""What /v1/completions answers is what the models say."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import lmlab

NAMES = ["gpt", "lstm", "ngram"]
TEXT = "the cat über 世界 often sat on a mat while rain falls down and the dog läuft"


@pytest.mark.parametrize("name", [*NAMES, "words"])
def test_log_probabilities_of_an_echoed_string_are_the_scores_of_the_lab(client: Any, runs: Any, name: str) -> None:
    """llama.cpp and SGLang leave the prompt out of an echo, and harnesses then score every choice alike."""
    answer = client.complete(name, TEXT, max_tokens=0, echo=True, logprobs=1)
    found = answer["choices"][0]["logprobs"]["token_logprobs"]
    expected = [-token.bits * math.log(2) for token in lmlab.score(runs[name], TEXT, device="cpu").tokens]
    assert len(found) == len(expected) > 5  # the first token has a log-probability of its own
    assert found == pytest.approx(expected, abs=1e-5)
    assert answer["choices"][0]["text"] == TEXT
    assert answer["usage"]["completion_tokens"] == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("logprobs", [0, 3])
def test_a_text_longer_than_the_context_is_scored_by_the_rule_of_eval(
    client: Any, runs: Any, name: str, logprobs: int
) -> None:
    text = " ".join([TEXT] * 40)
    answer = client.complete(name, text, max_tokens=0, echo=True, logprobs=logprobs)
    bits = -math.fsum(answer["choices"][0]["logprobs"]["token_logprobs"]) / math.log(2)
    assert bits == pytest.approx(lmlab.score(runs[name], text, device="cpu").bits, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_greedy_flags_follow_from_equality_of_floats(client: Any, name: str) -> None:
    """lm-eval takes a token for greedy if its log-probability equals the largest alternative exactly."""
    served = client.models[name]
    logprobs = client.complete(name, TEXT, max_tokens=0, echo=True, logprobs=2)["choices"][0]["logprobs"]
    ids = served.prompt(TEXT).ids
    logp_1V, state = served.model.begin(1)
    for place, id in enumerate(ids):
        top, said = logprobs["top_logprobs"][place], logprobs["token_logprobs"][place]
        assert top[logprobs["tokens"][place]] == said
        is_greedy = int(logp_1V.argmax()) == id
        assert (said == max(top.values())) == is_greedy
        with torch.inference_mode():
            logp_1V, state = served.model.advance(torch.tensor([[id]]), state)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_harness_drops_is_one_generated_token(client: Any, name: str) -> None:
    """The request of lm-eval: begin symbol and ids, echo, one token more, whose entry it leaves out."""
    served = client.models[name]
    ids = [served.begin_id, *served.prompt("the cat sat").ids]
    answer = client.complete(name, [ids, ids[:3]], max_tokens=1, echo=True, logprobs=1, temperature=0)
    first, second = (choice["logprobs"] for choice in answer["choices"])
    assert len(first["token_logprobs"]) == len(ids) + 1
    assert len(second["token_logprobs"]) == 4
    assert first["token_logprobs"][0] is None  # the begin symbol itself
    assert first["token_logprobs"][1:3] == pytest.approx(second["token_logprobs"][1:3], abs=1e-5)
    assert answer["usage"] == {"prompt_tokens": len(ids) + 3, "completion_tokens": 2, "total_tokens": len(ids) + 5}


def test_nothing_is_added_to_token_prompts(client: Any) -> None:
    ids = list(client.models["gpt"].prompt("the cat").ids)
    answer = client.complete("gpt", ids, max_tokens=0, echo=True, logprobs=0)
    assert len(answer["choices"][0]["logprobs"]["tokens"]) == len(ids)


@pytest.mark.parametrize("name", [*NAMES, "words"])
def test_greedy_text_is_that_of_generate(client: Any, runs: Any, name: str) -> None:
    expected = lmlab.generate(runs[name], "the cat", method="greedy", tokens=12, device="cpu")[0]
    answer = client.complete(name, "the cat", max_tokens=12, temperature=0)
    assert answer["choices"][0]["text"] == expected.text
    assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("name", NAMES)
def test_the_pieces_of_a_stream_make_the_whole_answer(client: Any, name: str) -> None:
    fields = {"model": name, "prompt": "the", "max_tokens": 30, "seed": 7, "logprobs": 2, "n": 2, "echo": True}
    whole = client.complete(name, **{k: v for k, v in fields.items() if k != "model"})
    events = client.stream(**fields, stream_options={"include_usage": True})
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"] == whole["usage"]
    for choice in whole["choices"]:
        pieces = [c for event in events[:-2] for c in event["choices"] if c["index"] == choice["index"]]
        assert "".join(piece["text"] for piece in pieces) == choice["text"]
        for key, values in choice["logprobs"].items():
            joined = [value for piece in pieces for value in piece["logprobs"][key]]
            assert joined == values if key != "token_logprobs" else joined == pytest.approx(values, abs=1e-5)
        assert [piece["finish_reason"] for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert pieces[-1]["finish_reason"] == choice["finish_reason"] == "length"


def test_half_a_character_is_never_sent_and_none_is_lost(client: Any) -> None:
    events = client.stream(model="lstm", prompt="世", max_tokens=60, temperature=1.5, seed=3)
    text = "".join(piece["text"] for event in events[:-1] for piece in event["choices"])
    expected = client.complete("lstm", "世", max_tokens=60, temperature=1.5, seed=3)["choices"][0]["text"]
    assert text == expected
    assert len(text.encode()) >= 60  # every byte is there, as itself or as U+FFFD


def test_a_stop_string_that_spans_tokens_ends_the_text_before_it(client: Any) -> None:
    whole = client.complete("gpt", "the", max_tokens=40, seed=1)["choices"][0]["text"]
    stop = whole[10:14]
    answer = client.complete("gpt", "the", max_tokens=40, seed=1, stop=[stop, "never there"])["choices"][0]
    assert answer["text"] == whole[: whole.index(stop)]
    assert answer["finish_reason"] == "stop"


def test_the_best_of_several_has_the_likeliest_tokens(client: Any) -> None:
    of = {"max_tokens": 8, "seed": 5, "logprobs": 0}
    many = client.complete("gpt", "the", n=6, **of)["choices"]
    best = client.complete("gpt", "the", best_of=6, n=2, **of)["choices"]
    means = sorted((float(np.mean(c["logprobs"]["token_logprobs"])) for c in many), reverse=True)
    assert [float(np.mean(c["logprobs"]["token_logprobs"])) for c in best] == pytest.approx(means[:2], abs=1e-5)
    assert [c["index"] for c in best] == [0, 1]


def test_offsets_say_where_each_token_begins_in_the_text(client: Any) -> None:
    choice = client.complete("ngram", "über", max_tokens=5, echo=True, logprobs=0, seed=2)["choices"][0]
    for (start, end), token in zip(
        pairwise(choice["logprobs"]["text_offset"]), choice["logprobs"]["tokens"], strict=False
    ):
        assert choice["text"][start:end] == token


def test_impossible_tokens_are_written_as_a_number_that_json_has(client: Any) -> None:
    from lmlab.server.choice import LEAST_LOGPROB, Choice

    served = client.models["ngram"]
    choice = Choice(served, served.prompt("a"), 0, 1, True)
    from lmlab.server.prompt_scores import PromptScores

    piece = choice.add_prompt(PromptScores(np.array([-np.inf], dtype=np.float32), [[(3, -0.5)]]))
    assert piece["logprobs"]["token_logprobs"] == [LEAST_LOGPROB]


def test_64_requests_side_by_side_get_what_each_gets_alone(client: Any) -> None:
    """vLLM's numbers depend on what else is in the batch."""
    from concurrent.futures import ThreadPoolExecutor

    def fields(i: int) -> dict[str, Any]:
        of: dict[str, Any] = {
            "model": NAMES[i % 3],
            "prompt": TEXT[: 1 + i % 40],
            "max_tokens": 1 + i % 13,
            "logprobs": i % 3,
        }
        of |= {"seed": i, "temperature": (0.0, 0.7, 1.3)[i % 3], "echo": i % 2 == 0}
        return of | ({"top_p": 0.9} if i % 4 == 1 else {}) | ({"stop": ["a"]} if i % 5 == 0 else {})

    def ask(i: int) -> Any:
        return client.ask("/v1/completions", fields(i))

    alone = [ask(i) for i in range(64)]
    with ThreadPoolExecutor(64) as pool:
        together = list(pool.map(ask, range(64)))
    for (status, one), (other_status, other) in zip(alone, together, strict=True):
        assert status == other_status == 200
        first, second = one["choices"][0], other["choices"][0]
        assert first["text"] == second["text"]
        assert first["logprobs"]["token_logprobs"] == pytest.approx(second["logprobs"]["token_logprobs"], abs=1e-5)
        assert first["finish_reason"] == second["finish_reason"]
