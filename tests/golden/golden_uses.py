"""Golden values of the kept runs in use: scores, certificates, hashes, intervals, texts, compressed bytes, other tasks."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from golden_models import scores
from golden_places import Place, replace_in_texts
from golden_texts import PROBE
from golden_values import Group

import lmlab
from lmlab.compression.file_format import unpack
from lmlab.measure.result import Result
from lmlab.models.registry import Role, kind_of

LANGUAGE_MODELS = (
    "uniform-words", "bag-bpe", "bag-markov", "ngram-words", "ngram-char", "bigram-words", "feedforward-words",
    "attention-words", "cnn-words", "rnn-words", "gru-words", "lstm-byte", "rnn-attention-words", "gpt-char", "gpt-words",
    "gpt-stopped", "mix-words", "mix-gate", "mix-gate adapts",
)  # fmt: skip
OTHERS = ("bert-words", "classifier-words", "dan-words", "translator", "variational-words", "glove", "autoencoder")
MEASURED = ("ngram-words", "gpt-char", "lstm-byte", "mix-words")  # with everything that belongs to a measurement
IN_A_RESULT = (
    "bits_per_byte", "nats", "spelling_nats", "bytes", "characters", "words", "tokens", "unknown_tokens", "fallback_tokens",
    "impossible_tokens", "perplexity", "perplexity_units", "context",
)  # fmt: skip

PROMPT = "The cat "
DRAWN = {"method": "sample", "tokens": 24, "seed": 3}
DECODED: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy", "tokens": 24},
    "sample": {**DRAWN, "samples": 2},
    "sample top_k": {**DRAWN, "top_k": 5, "temperature": 0.8},
    "sample top_p": {**DRAWN, "top_p": 0.8},
    "sample min_p": {**DRAWN, "min_p": 0.05},
    "sample stop": {**DRAWN, "stop": [".", "!"]},
    "beam": {"method": "beam", "tokens": 12, "beam": 3, "best": 2},
    "beam penalty": {"method": "beam", "tokens": 12, "beam": 4, "length_penalty": 0.0},
    "exhaustive": {"method": "exhaustive", "tokens": 2, "best": 2},
}
GENERATING = ("ngram-words", "ngram-char", "gpt-char", "gpt-words", "lstm-byte", "rnn-attention-words", "mix-gate")
GENERATED = tuple(
    f"{run} {way}"
    for run in GENERATING
    for way in DECODED
    if way != "exhaustive" or run in ("ngram-words", "gpt-words")
)
COMPRESSED: dict[str, tuple[str, int]] = {  # the run and the number of streams
    "ngram-words": ("ngram-words", 1),
    "ngram-char": ("ngram-char", 1),
    "ngram-char in three": ("ngram-char", 3),
    "bag-bpe": ("bag-bpe", 1),
    "gpt-char": ("gpt-char", 1),
    "lstm-byte": ("lstm-byte", 1),
}


@cache
def evaluated(run: Path) -> Result:
    """The test part of a kept run, which is a file measured whole, under its model."""
    found = lmlab.evaluate(run, device="cpu")
    assert isinstance(found, Result)
    return found


def scored(case: str, place: Place) -> dict[str, Any]:
    """What strings cost under a kept run; `test_golden_runs` measures some of them whole."""
    run, _, adapts = case.partition(" ")
    if adapts:
        shutil.copytree(place.run(run), place.new / "run")
        replace_in_texts(place.new, '"adapt": false', '"adapt": true')
        return scores(lmlab.load(place.new / "run"), place)
    return scores(lmlab.load(place.run(run)), place)


def measured(case: str, place: Place) -> dict[str, Any]:
    found = evaluated(place.run(case)).to_json()
    return {key: found[key] for key in IN_A_RESULT}


def checks(case: str, place: Place) -> dict[str, bool]:
    if case == "translator":
        translated = lmlab.evaluate(place.run(case), device="cpu").to_json()
        return {check["name"]: check["passed"] for check in translated["certificate"]["checks"]}
    return {check.name: check.passed for check in evaluated(place.run(case)).certificate.checks}


def hashes(case: str, place: Place) -> dict[str, str]:
    return dict(evaluated(place.run(case)).certificate.hashes)


def interval(case: str, place: Place) -> dict[str, Any]:
    """Of one file measured whole; or of its lines, each a document."""
    run, _, what = case.partition(" ")
    if what == "of one file":
        found = evaluated(place.run(run)).to_json()
    else:
        lines = place.text("test.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        found = lmlab.evaluate(place.run(run), lmlab.strings(lines), device="cpu").to_json()
    return {"interval": found["interval"], **found["interval_details"]}


def generated(case: str, place: Place) -> list[Any]:
    run, _, way = case.partition(" ")
    return [found.to_json() for found in lmlab.generate(place.run(run), PROMPT, device="cpu", **DECODED[way])]


def side_by_side(case: str, place: Place) -> list[Any]:
    """Several prompts continued together."""
    found = lmlab.generate_many(place.run(case), [PROMPT, "Nobody", "A dog sees a"], device="cpu", tokens=12, seed=5)
    return [[one.to_json() for one in ones] for ones in found]


def compressed(case: str, place: Place) -> dict[str, Any]:
    """Bytes of a short text: all of them where a model counts, else how many without what names the machine."""
    run, streams = COMPRESSED[case]
    out, probe = place.new / "probe.lm", place.new / "probe.txt"
    probe.write_text(PROBE, encoding="utf-8")
    made = lmlab.compress(probe, model=place.run(run), out=out, streams=streams, check=True)
    content = out.read_bytes()
    header, _ = unpack(content)
    found = {"claimed_bits": made.claimed_bits, "tokens": made.tokens, "checked": made.checked}
    return found if header.maker else {**found, "bytes": len(content), "content": content.hex()}


def compressed_size(case: str, place: Place) -> int:
    """Bytes without what names the machine."""
    compressed(case, place)
    content = (place.new / "probe.lm").read_bytes()
    return len(content) - len(unpack(content)[0].maker.encode())


LEFT_OUT = ("notes", "note", "data", "seconds", "certificate")


def _numbers(document: Any) -> Any:
    """The estimates of a result, without intervals and sentences."""
    if isinstance(document, dict):
        if "estimate" in document or ("value" in document and "low" in document):
            return document.get("estimate", document.get("value"))
        kept = {key: _numbers(value) for key, value in document.items() if key not in LEFT_OUT}
        return {key: value for key, value in kept.items() if value is not None}
    return [_numbers(item) for item in document] if isinstance(document, list) else document


def other_task(case: str, place: Place) -> dict[str, Any]:
    """What a model of another task is measured by, and what its verb says."""
    run = place.run(case)
    found: dict[str, Any] = {"measured": _numbers(lmlab.evaluate(run, device="cpu").to_json())}
    match kind_of(lmlab.load(run).record.model.name).role:
        case Role.ENCODER:
            said: Any = lmlab.fill(
                run, ["The cat [MASK] a red boat", "[MASK] dog sees the [MASK]"], top=2, device="cpu"
            )
        case Role.CLASSIFIER:
            said = lmlab.classify(run, ["a bright film", "nobody paints a grey film"], device="cpu")
        case Role.TRANSLATOR:
            said = lmlab.translate(run, ["forty-two", "fifty-six"], beam=3, best=2, device="cpu")
        case Role.LATENT_VARIABLE_MODEL:
            said = lmlab.latent(run, "The cat sees", "A dog paints", number=3, device="cpu")
        case Role.WORD_VECTORS:
            said = lmlab.neighbours(run, "the", number=3)
        case Role.AUTOENCODER:
            said = lmlab.combine(run, ["the", "w3"], number=3, device="cpu")
    return found | {"said": _said(said)}


def _said(said: Any) -> Any:
    return [_said(one) for one in said] if isinstance(said, list | tuple) else said.to_json()


ROUNDING = "weights are kept; processors add in another order"
FIXED: dict[str, Any] = {"tolerance": 2e-5, "why": ROUNDING}
GROUPS = (
    Group(name="scores", cases=LANGUAGE_MODELS, measure=scored, **FIXED),
    Group(name="measured", cases=MEASURED, measure=measured, **FIXED),
    Group(name="certificates", cases=(*MEASURED, "translator"), measure=checks, tolerance=0.0, why="names and answers"),
    Group(name="hashes", cases=MEASURED, measure=hashes, tolerance=0.0, why="of kept weights"),
    Group(
        name="intervals",
        cases=tuple(f"{run} {what}" for what in ("of one file", "of documents") for run in ("ngram-words", "gpt-char")),
        measure=interval,
        **FIXED,
    ),
    Group(
        name="generated",
        cases=GENERATED,
        measure=generated,
        slow=frozenset(case for case in GENERATED if case.startswith(("mix-gate", "rnn-attention"))),
        **FIXED,
    ),
    Group(name="generated together", cases=("ngram-words", "gpt-char", "gru-words"), measure=side_by_side, **FIXED),
    Group(name="compressed", cases=tuple(COMPRESSED), measure=compressed, **FIXED),
    Group(
        name="compressed sizes",
        cases=("gpt-char", "lstm-byte"),
        measure=compressed_size,
        tolerance=0.025,
        why="two bytes: each token's share of the coder's range is rounded from what the processor found",
    ),
    Group(
        name="other tasks", cases=OTHERS, measure=other_task, tolerance=1e-4, why=f"{ROUNDING}; vectors nearly cancel"
    ),
)
