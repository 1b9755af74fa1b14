"""Exercise 12.16: the size of BERT-Large, counted on real modules that own no memory (torch's meta device)."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged
from lmlab.coursework.shared_tools import parameters, value

claim = book("bishop12").claim

WIDTH, HEADS, HIDDEN, LAYERS = 1024, 16, 4096, 24
EXERCISE_VOCABULARY, TRUE_VOCABULARY = 30_000, 30_522
POSITIONS, SEGMENTS = 512, 2
# What was published of BERT-Large cannot be computed here; a test holds these three against the transformers library.
PUBLISHED = {"positions": "learned", "activation": "gelu", "prediction": "tied"}
MILLION = 1_000_000


def layer() -> nn.TransformerEncoderLayer:
    """One block of BERT-Large: attention, two norms, and an MLP with GELU; every linear map with its bias."""
    return nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, activation="gelu", batch_first=True, device="meta")


def bert_large(vocabulary: int, positions: str = "learned") -> nn.ModuleDict:
    """BERT-Large as published: three embeddings and their norm, the blocks, and the pooler on the first token."""
    with torch.device("meta"):
        parts: dict[str, nn.Module] = {
            "words": nn.Embedding(vocabulary, WIDTH),
            "segments": nn.Embedding(SEGMENTS, WIDTH),
            "norm": nn.LayerNorm(WIDTH),
            "blocks": nn.ModuleList(layer() for _ in range(LAYERS)),
            "pooler": nn.Linear(WIDTH, WIDTH),
        }
        if positions == "learned":
            parts["positions"] = nn.Embedding(POSITIONS, WIDTH)
        return nn.ModuleDict(parts)


def prediction_head(vocabulary: int, prediction: str) -> int:
    """Parameters the masked-word head adds: a dense layer, its norm and a bias, and the word matrix unless it is tied."""
    with torch.device("meta"):
        dense = parameters(nn.Linear(WIDTH, WIDTH)) + parameters(nn.LayerNorm(WIDTH))
    return dense + vocabulary + {"tied": 0, "untied": vocabulary * WIDTH}[prediction]


def parts() -> dict[str, int]:
    """The parts of the model that the document counts, counted."""
    block = layer()
    weights, biases = (
        sum(p.numel() for name, p in block.self_attn.named_parameters() if name.endswith(kind))
        for kind in ("weight", "bias")
    )
    projections = block.self_attn.in_proj_weight.numel()
    return {
        "embedding": parameters(nn.Embedding(EXERCISE_VOCABULARY, WIDTH, device="meta")),
        "one head": projections // HEADS,
        "all heads": projections,
        "output projection": block.self_attn.out_proj.weight.numel(),
        "attention": weights,
        "mlp": parameters(block.linear1) + parameters(block.linear2),
        "attention biases": biases,
        "norms": parameters(block.norm1) + parameters(block.norm2),
    }


def counted_in_the_document() -> int:
    """The terms the document adds up: embedding, attention weights and MLP."""
    found = parts()
    return found["embedding"] + LAYERS * (found["attention"] + found["mlp"])


def millions(count: float) -> str:
    """A count in millions, two decimals."""
    return f"{count / MILLION:,.2f} M"


@claim(
    "16.a",
    counts={
        "embedding": 30_720_000,
        "one head": 196_608,
        "all heads": 3_145_728,
        "output projection": 1_048_576,
        "attention": 4_194_304,
        "mlp": 8_393_728,
        "attention biases": 4_096,
        "norms": 4_096,
    },
)
def _parts(t: SimpleNamespace) -> Outcome:
    found = parts()
    lines = [f"{part} {count:,} (claimed {t.counts.get(part, 0):,})" for part, count in found.items()]
    return judged(exact(found == t.counts), "Built as torch modules and counted: " + "; ".join(lines) + ".")


@claim(
    "16.b",
    total_millions="333.1",
    terms="V*D + L*(4*D**2 + 2*D*F + F + D)",
    full="V*D + L*(4*D**2 + 4*D + 2*D*F + F + D + 4*D)",
)
def _total(t: SimpleNamespace) -> Outcome:
    sizes = {"V": EXERCISE_VOCABULARY, "D": WIDTH, "F": HIDDEN, "L": LAYERS}
    own, full = (int(value(text, **sizes)) for text in (t.terms, t.full))
    a_layer = (own - EXERCISE_VOCABULARY * WIDTH) // LAYERS
    rounded = round(a_layer, -5)
    said = float(t.total_millions) * MILLION
    return judged(
        exact(min(abs(said - own), abs(said - full)) < 0.05 * MILLION),
        f"The document's own terms, {t.terms}, sum to {own:,} ({millions(own)}); with attention biases and norms {full:,} "
        f"({millions(full)}). Claimed, to a tenth of a million: {t.total_millions} M.",
        because=f"It comes from rounding a layer of {a_layer:,} to {rounded:,} before multiplying by {LAYERS}, which adds "
        f"{LAYERS * (rounded - a_layer):,}. As a rough figure it stands; the digit after the point does not.",
        corrected=f"The terms counted in the document sum to {own:,}, about {own / MILLION:.1f} M; with attention biases and "
        f"norms {full:,}, about {full / MILLION:.1f} M.",
        holds=own == counted_in_the_document() and full == EXERCISE_VOCABULARY * WIDTH + LAYERS * parameters(layer()),
    )


@claim("16.c", total_millions="340", published=TRUE_VOCABULARY, exercise=EXERCISE_VOCABULARY)
def _published(t: SimpleNamespace) -> Outcome:
    counts = {v: parameters(bert_large(v)) for v in (t.published, t.exercise)}
    said = float(t.total_millions)

    def to_two_digits(vocabulary: int) -> float:
        return round(counts[vocabulary] / MILLION, -1)

    return conditional(
        exact(to_two_digits(t.published) == said),
        exact(to_two_digits(t.exercise) == said),
        "BERT-Large with learned positions, segments and pooler, counted: "
        + "; ".join(f"{v:,} words {count:,}, to two digits {to_two_digits(v):.0f} M" for v, count in counts.items())
        + f". Claimed: {t.total_millions} M; without positions, segments, pooler and norms, as the document counts, "
        f"{millions(counted_in_the_document())}.",
        because="The exercise gives a vocabulary of 30,000, with which the figure misses its second digit.",
        precisely=f"About {t.total_millions} million for the published vocabulary of {t.published:,}; with the exercise's "
        f"{t.exercise:,} it is {to_two_digits(t.exercise):.0f} million to two digits. Either way the figure is generous: "
        f"the count is {millions(counts[t.published])}.",
    )


@claim("16.d", positions="fixed", activation="relu", prediction="untied", total_millions="363.8")
def _choices(t: SimpleNamespace) -> Outcome:
    wrong = [name for name, choice in PUBLISHED.items() if getattr(t, name) != choice]
    learned, fixed = (parameters(bert_large(TRUE_VOCABULARY, kind)) for kind in ("learned", "fixed"))
    totals = {kind: learned + prediction_head(TRUE_VOCABULARY, kind) for kind in ("tied", "untied")}
    off = abs(float(t.total_millions) * MILLION - totals[t.prediction])
    return judged(
        exact(not wrong and off < 0.05 * MILLION),
        f"Positions {t.positions}, activation {t.activation}, prediction matrix {t.prediction}: differs from what was "
        f"published in {', '.join(wrong) or 'nothing'}.",
        f"Counted with learned positions {learned:,}, with fixed ones {fixed:,}; with the masked-word head {totals['tied']:,} "
        f"if its matrix is the word embedding itself, {totals['untied']:,} if not. The {t.total_millions} M for {t.prediction} "
        f"is off by {millions(off)}.",
        corrected=f"BERT learns its {POSITIONS} positions ({learned - fixed:,} parameters), uses GELU, and ties the "
        f"prediction matrix to the word embedding: {millions(totals['tied'])}.",
        holds=learned - fixed == POSITIONS * WIDTH and totals["untied"] - totals["tied"] == TRUE_VOCABULARY * WIDTH,
    )


@claim("16.e", causes=("attention biases", "norms in the blocks"), reached="333.1", published="340")
def _discrepancy(t: SimpleNamespace) -> Outcome:
    found, own, whole = parts(), counted_in_the_document(), parameters(bert_large(TRUE_VOCABULARY))
    model = bert_large(TRUE_VOCABULARY)
    missing = {
        "attention biases": LAYERS * found["attention biases"],
        "norms in the blocks": LAYERS * found["norms"],
        f"{TRUE_VOCABULARY - EXERCISE_VOCABULARY} more words": parameters(model["words"]) - found["embedding"],
        "learned positions": parameters(model["positions"]),
        "segments": parameters(model["segments"]),
        "norm of the embedding": parameters(model["norm"]),
        "pooler": parameters(model["pooler"]),
    }
    explained, left = sum(missing[cause] for cause in t.causes), sum(missing.values())
    return judged(
        exact(2 * explained >= left),
        f"From {own:,}, what the document counts, to {whole:,}, the whole model: {left:,} are left out: "
        + "; ".join(f"{name} {count:,}" for name, count in missing.items())
        + f". {' and '.join(t.causes)}: {explained:,}, {100 * explained / left:.0f} % of them, and "
        f"{100 * explained / ((float(t.published) - float(t.reached)) * MILLION):.0f} % of the way from {t.reached} M to "
        f"{t.published} M. A cause explains a gap if it covers at least half of it.",
        corrected=f"The parts left out add {left / MILLION:.1f} M and lead to {whole / MILLION:.1f} M; pooler, positions and "
        f"the missing words are most of it, and {t.published} M itself is {whole / MILLION:.1f} M rounded to two digits.",
        holds=own + left == whole and round(whole / MILLION, -1) == float(t.published),
    )
