"""Golden values of models: ten steps and scores of what learns, scores of what counts, mixes, costs and tokenizers."""

from __future__ import annotations

from typing import Any

from golden_places import Place
from golden_texts import PROBE
from golden_values import Group

import lmlab
from lmlab.learn.run import Run
from lmlab.models.registry import KINDS, Role, Way, kind_of
from lmlab.text.tokenizers import train_tokenizer

STEPS = 10
BLOCK = {"layers": 1, "width": 16, "heads": 2, "context": 12}
RECURRENT = {"layers": 1, "width": 16, "dropout": 0.0}
GPT = {"layers": 2, "width": 16, "heads": 2, "context": 16, "dropout": 0.1}

# The first word of a case is the kind of model. A kind without a case fails a test.
LEARNED: dict[str, dict[str, Any]] = {
    "bigram": {"width": 24},
    "feedforward": {"context": 4, "embedding_width": 16, "width": 32, "dropout": 0.1},
    "attention": {"context": 8, "width": 16},
    "attention learned": {"context": 8, "width": 16, "positions": "learned"},
    "cnn": {"layers": 2, "width": 16, "dropout": 0.1},
    "rnn": RECURRENT,
    "gru": {"layers": 2, "width": 16, "dropout": 0.1},
    "lstm": RECURRENT,
    "lstm tied": {**RECURRENT, "embedding_width": 16, "tie": True, "bias": False},
    "rnn-attention": {"width": 16},
    "rnn-attention additive": {"width": 16, "score_function": "additive", "attend_to": "combined"},
    "gpt": GPT,
    "gpt untied": {**GPT, "tie": False},
    "gpt learned": {**GPT, "positions": "learned", "activation": "gelu"},
    "gpt sinusoidal": {**GPT, "positions": "sinusoidal", "stride": 16},
    "gpt words:20": GPT,
    "gpt bpe:280": GPT,
    "bert": BLOCK,
    "variational": {"layers": 1, "width": 16, "latent": 2, "segment": 8},
    "classifier": {**BLOCK, "layers": 2},
    "dan": {"width": 16, "hidden": 16},
    "translator": {"layers": 1, "width": 16, "heads": 2},
    "glove": {"width": 8, "window": 5, "held_out": 0.1},
    "autoencoder": {"width": 8},
}
TEXTS = {"classifier": "films.tsv", "dan": "films.tsv", "translator": "pairs.tsv", "glove": "neighbours.txt"}
TEXTS |= {"autoencoder": "neighbours.txt"}
TOKENIZERS = {"bert": "words", "variational": "words", "classifier": "words"}  # char for language models

COUNTED: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("char", {}),
    "bag": ("char", {}),
    "bag ml": ("words", {"smoothing": "ml"}),
    "ngram 1": ("char", {"order": 1}),
    "ngram 2": ("char", {"order": 2}),
    "ngram 5": ("char", {"order": 5}),
    "ngram by itself": ("char", {}),
    "ngram words": ("words", {"order": 3}),
    "ngram words:20": ("words:20", {"order": 2}),
    "ngram bpe": ("bpe:280", {"order": 3}),
    "ngram bytes add-k": ("byte", {"order": 3, "smoothing": "add-k", "k": 0.1}),
    "ngram ml": ("char", {"order": 3, "smoothing": "ml"}),
    "ngram line": ("char", {"order": 4, "restart": "line"}),
}
MIXES: dict[str, tuple[tuple[str, ...], bool]] = {  # of which kept runs, and whether it adapts
    "mix constant": (("ngram-words", "gpt-words"), False),
    "mix gate": (("attention-words", "rnn-words"), False),
    "mix adapts": (("attention-words", "rnn-words"), True),
    "mix leaves out": (("bigram-words", "cnn-words", "gru-words"), False),
}
COSTS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "bag": {},
    "ngram": {"settings": {"order": 3}},
    **{case: {"settings": settings} for case, settings in LEARNED.items() if ":" not in case},
    "gpt long": {
        "settings": {"layers": 3, "width": 48, "heads": 4, "context": 64, "tie": False},
        "length": 40,
        "vocab": 1000,
    },
    "dan": {"settings": {**LEARNED["dan"], "labels": 3}},
    "classifier": {"settings": {**LEARNED["classifier"], "labels": 3}},
    "translator": {"settings": {**LEARNED["translator"], "languages": 2, "context": 12}},
    "autoencoder": {"settings": {**LEARNED["autoencoder"], "labels": 2}},
}
NOT_KEPT = ("seconds", "gradient_norm")  # the norm carries ten times as much rounding as the losses
COUNTED_NUMBERS = (
    "vocab_size", "parameters", "formula", "latex", "instance", "length", "forward", "backward", "dispatched",
    "cache_bytes_per_token", "agrees",
)  # fmt: skip
PART = ("times", "weights", "formula", "forward", "forward_formula", "backward", "backward_formula")


def kind(case: str) -> str:
    """The kind of model that a case is of."""
    return case.split()[0]


def scores(run: Run, place: Place) -> dict[str, Any]:
    """Bits of a short string, token by token (null where they are infinite), and of the whole test text."""
    probe = lmlab.score(run, PROBE, device="cpu").to_json()
    whole = lmlab.score(run, place.text("test.txt").read_text(encoding="utf-8"), device="cpu").to_json()
    return {"probe_bits": [bits for word in probe["words"] for _, bits in word["tokens"]], "test_bits": whole["bits"]}


def trained(case: str, place: Place) -> Run:
    """Ten steps of a kind that learns, or a fit of one that counts."""
    model, counts = kind(case), kind_of(kind(case)).way is Way.COUNTS
    given = case.split()[1] if ":" in case and not counts else None
    tokenizer, settings = COUNTED[case] if counts else (given or TOKENIZERS.get(model), LEARNED[case])
    plain_text = TEXTS.get(model, "train.txt") == "train.txt"
    return lmlab.train(
        model,
        place.text(TEXTS.get(model, "train.txt")),
        out=place.new / "run",
        tokenizer=tokenizer or ("char" if kind_of(model).role is Role.LANGUAGE_MODEL else None),
        budget=f"{STEPS}steps",
        settings=settings,
        # The rate is high, so that ten steps lead far enough for a change to show.
        learning=None if counts else {"calibrate": False, "validations": STEPS, "learning_rate": 0.01},
        device="cpu",
        precision="float32",
        **({"valid": place.text("valid.txt"), "test": place.text("test.txt")} if plain_text else {}),
    )


def learned(case: str, place: Place) -> dict[str, Any]:
    """The curve, every number of it that is no time, and scores where the kind predicts the next token."""
    run = trained(case, place)
    metrics = run.metrics
    curve = {key: [line[key] for line in metrics] for key in metrics[0] if key not in NOT_KEPT}
    found = {"config": dict(run.record.model.config), "parameters": run.record.model.parameters, **curve}
    return found | (scores(run, place) if kind_of(kind(case)).role is Role.LANGUAGE_MODEL else {})


def counted(case: str, place: Place) -> dict[str, Any]:
    run = trained(case, place)
    return {
        "config": dict(run.record.model.config),
        "parameters": run.record.model.parameters,
        "hash": run.model_hash,
        **scores(run, place),
    }


def mixed(case: str, place: Place) -> dict[str, Any]:
    names, adapt = MIXES[case]
    run = lmlab.mix([place.run(name) for name in names], out=place.new / "mix", adapt=adapt, device="cpu")
    parts = [[part.model, part.weight] for part in run.record.inputs.parts]
    return {"weighting": run.record.model.config["weighting"], "parts": parts, **scores(run, place)}


def cost(case: str, place: Place) -> Any:
    text = place.text("train.txt") if kind_of(kind(case)).way is Way.COUNTS else None
    found = lmlab.count(kind(case), text, **COSTS[case]).to_json()
    numbers = {key: found[key] for key in COUNTED_NUMBERS}
    parts = {part["name"]: [part[key] for key in PART] for part in found["parts"]}
    return {**numbers, "settings": found["settings"], f"parts: {', '.join(PART)}": parts}


def tokens(case: str, place: Place) -> dict[str, Any]:
    """What a tokenizer makes of a string, after learning from the training text."""
    tokenizer = train_tokenizer(case, iter([place.text("train.txt").read_text(encoding="utf-8")]))
    encoded = tokenizer.encode(PROBE)
    return {
        "vocab_size": tokenizer.vocab_size,
        "hash": tokenizer.hash,
        "ids": [int(i) for i in encoded.ids],
        "spellings": list(encoded.spellings),
    }


def kinds(*ways: Way) -> set[str]:
    """The registered kinds of these ways."""
    return {kind.name for kind in KINDS.values() if kind.way in ways}


VARIANTS = frozenset(
    {"attention learned", "lstm tied", "rnn-attention additive", "gpt untied", "gpt sinusoidal", "gpt words:20"}
)  # of kinds that are measured anyway
ROUNDING = "processors with and without AVX-512 add in another order; measured: see test_golden"
GROUPS = (
    Group(name="learned", cases=tuple(LEARNED), measure=learned, tolerance=5e-5, why=ROUNDING, slow=VARIANTS),
    Group(name="counted", cases=tuple(COUNTED), measure=counted, tolerance=1e-6, why="scores are kept as float32"),
    Group(
        name="mixes",
        cases=tuple(MIXES),
        measure=mixed,
        tolerance=1e-2,
        why="L-BFGS carries rounding to the third digit of fitted weights",
        slow=frozenset({"mix leaves out"}),
    ),
    Group(
        name="costs", cases=tuple(COSTS), measure=cost, tolerance=0.0, why="formulas and whole numbers", slow=VARIANTS
    ),
    Group(
        name="tokens", cases=("byte", "char", "words", "words:40", "bpe:280"), measure=tokens, tolerance=0.0, why="ids"
    ),
)
