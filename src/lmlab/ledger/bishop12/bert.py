"""Exercise 12.16: the size of BERT-Large, counted on real modules that own no memory (torch's meta device)."""

from __future__ import annotations

from types import SimpleNamespace

from torch import nn

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, proved, refuted, supported
from lmlab.ledger.kit import parameters, value

WIDTH, HEADS, HIDDEN, LAYERS = 1024, 16, 4096, 24
EXERCISE_VOCABULARY, TRUE_VOCABULARY = 30_000, 30_522
POSITIONS, SEGMENTS = 512, 2
PUBLISHED = {"activation": "gelu", "prediction": "tied"}  # the tests read both from the transformers library too
MILLION = 1_000_000


def layer() -> nn.TransformerEncoderLayer:
    """One block of BERT-Large: attention, two norms, and an MLP with GELU; every linear map with its bias."""
    return nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, activation="gelu", batch_first=True, device="meta")


def bert_large(vocabulary: int, learned_positions: bool = True, pooler: bool = True) -> nn.ModuleDict:
    """BERT-Large as published: three embeddings and their norm, the blocks, and the pooler on the first token."""
    parts: dict[str, nn.Module] = {
        "words": nn.Embedding(vocabulary, WIDTH, device="meta"),
        "segments": nn.Embedding(SEGMENTS, WIDTH, device="meta"),
        "norm": nn.LayerNorm(WIDTH, device="meta"),
        "blocks": nn.ModuleList(layer() for _ in range(LAYERS)),
    }
    if learned_positions:
        parts["positions"] = nn.Embedding(POSITIONS, WIDTH, device="meta")
    if pooler:
        parts["pooler"] = nn.Linear(WIDTH, WIDTH, device="meta")
    return nn.ModuleDict(parts)


def prediction_head(vocabulary: int, tied: bool) -> int:
    """Parameters the masked-word head adds: a dense layer, its norm and a bias, and the word matrix unless it is tied."""
    dense = parameters(nn.Linear(WIDTH, WIDTH, device="meta")) + parameters(nn.LayerNorm(WIDTH, device="meta"))
    return dense + vocabulary + (0 if tied else vocabulary * WIDTH)


def millions(count: int | float) -> str:
    """A count in millions, two decimals."""
    return f"{count / MILLION:,.2f} M"


@BOOK.claim(
    "16.a",
    where="Exercise 12.16, lines 506-509",
    says="The parts of BERT-Large: word embedding 30.72 M; per head 196,608 for queries, keys and values, 3,145,728 "
    "over 16 heads; output projection 1,048,576, attention together 4,194,304; MLP 8,393,728; attention biases "
    "4,096; norms 4,096 a layer.",
    latex=r"VD,\ 3DD_k,\ 3HDD_k,\ D^2,\ 4D^2,\ 2D\cdot 4D+4D+D,\ 3HD_k+D,\ 4D",
    how="Each part is built as a torch module on the meta device and its parameters are counted.",
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
    block = layer()
    attention = block.self_attn
    weights = [p for name, p in attention.named_parameters() if name.endswith("weight")]
    biases = [p for name, p in attention.named_parameters() if name.endswith("bias")]
    projections = attention.in_proj_weight.numel()
    found = {
        "embedding": parameters(nn.Embedding(EXERCISE_VOCABULARY, WIDTH, device="meta")),
        "one head": projections // HEADS,
        "all heads": projections,
        "output projection": attention.out_proj.weight.numel(),
        "attention": sum(p.numel() for p in weights),
        "mlp": parameters(block.linear1) + parameters(block.linear2),
        "attention biases": sum(p.numel() for p in biases),
        "norms": parameters(block.norm1) + parameters(block.norm2),
    }
    wrong = {part: (found[part], said) for part, said in t.counts.items() if found[part] != said}
    return proved(not wrong, "Counted: " + "; ".join(f"{part} {count:,}" for part, count in found.items()) + ".")


@BOOK.claim(
    "16.b",
    where="Exercise 12.16, line 511",
    says="With 30,000 words the total is about 333.1 million.",
    latex=r"VD+L(4D^2+8D^2+5D)\approx 333.1\cdot10^{6}",
    how="The document's own terms (embedding, attention weights, MLP with biases) added exactly, and again with the "
    "attention biases and norms it leaves out; a figure given to a tenth of a million must be within 0.05 million.",
    total_millions="333.1",
    terms="V*D + L*(4*D**2 + 2*D*F + F + D)",
    full="V*D + L*(4*D**2 + 4*D + 2*D*F + F + D + 4*D)",
)
def _total(t: SimpleNamespace) -> Outcome:
    sizes = {"V": EXERCISE_VOCABULARY, "D": WIDTH, "F": HIDDEN, "L": LAYERS}
    own, full = int(value(t.terms, **sizes)), int(value(t.full, **sizes))
    block = layer()
    counted = EXERCISE_VOCABULARY * WIDTH + LAYERS * parameters(block)
    said = float(t.total_millions) * MILLION
    near = abs(said - own) < 0.05 * MILLION or abs(said - full) < 0.05 * MILLION
    return refuted(
        holds=near,
        evidence=f"The document's own terms sum to {own:,} ({millions(own)}); with attention biases and norms "
        f"{full:,} ({millions(full)}). The figure {t.total_millions} M comes from rounding a layer of 12,588,032 up "
        f"to 12.6 M before multiplying by 24, which adds {24 * (12_600_000 - 12_588_032):,}. As a rough figure, 333 M, "
        "it stands; the digit after the point does not.",
        corrected=f"The terms counted in the document sum to {own:,}, about 332.8 M; with attention biases and "
        f"norms {full:,}, about 333.0 M.",
        corrected_holds=full == counted and round(own / MILLION, 1) == 332.8 and round(full / MILLION, 1) == 333.0,
    )


@BOOK.claim(
    "16.c",
    where="Exercise 12.16, lines 502 and 513",
    says="BERT-Large has about 340 million parameters.",
    latex=r"\#\text{BERT-Large}\approx 340\cdot10^{6}",
    how="The published model (30,522 words, learned positions, two segments, pooler) is built on the meta device and "
    "counted; the round figure must agree to two significant digits.",
    total_millions="340",
    vocabulary=TRUE_VOCABULARY,
)
def _published(t: SimpleNamespace) -> Outcome:
    encoder = parameters(bert_large(t.vocabulary))
    heads = prediction_head(t.vocabulary, tied=True) + parameters(nn.Linear(WIDTH, 2, device="meta"))
    small = parameters(bert_large(EXERCISE_VOCABULARY))
    rounded = round(encoder / MILLION, -1)
    return supported(
        rounded == float(t.total_millions),
        f"Counted: {encoder:,} with the pooler, {encoder + heads:,} with both pre-training heads; to two digits "
        f"{rounded:.0f} M. The figure is generous: it is "
        f"{100 * (float(t.total_millions) * MILLION / encoder - 1):.1f} % above the count. With the exercise's "
        f"round vocabulary of 30,000 the model has {small:,}, which rounds to {round(small / MILLION, -1):.0f} M.",
    )


@BOOK.claim(
    "16.d",
    where="Exercise 12.16, lines 506 and 513",
    says="Positions may be taken as fixed sinusoids; the MLP uses ReLU; BERT has a prediction layer of its own, and "
    "untied the total is 363.8 million.",
    latex=r"333.1\cdot10^6+VD\approx 363.8\cdot10^6",
    how="The published count of the encoder, 335,141,888, is reproduced only with learned positions; the other "
    "choices are counted beside it. Activation and tying are compared with the published settings.",
    positions="fixed",
    activation="relu",
    prediction="untied",
    untied_millions="363.8",
    published=335_141_888,
)
def _choices(t: SimpleNamespace) -> Outcome:
    learned = parameters(bert_large(TRUE_VOCABULARY))
    fixed = parameters(bert_large(TRUE_VOCABULARY, learned_positions=False))
    tied = learned + prediction_head(TRUE_VOCABULARY, tied=True)
    untied = learned + prediction_head(TRUE_VOCABULARY, tied=False)
    true = {"positions": "learned" if learned == t.published else "fixed", **PUBLISHED}
    wrong = [name for name, choice in true.items() if getattr(t, name) != choice]
    short = abs(float(t.untied_millions) * MILLION - untied)
    return refuted(
        holds=not wrong and short < 0.05 * MILLION,
        evidence=f"Learned positions give {learned:,}, the published count; fixed ones {fixed:,} "
        f"({learned - fixed:,} fewer). With the masked-word head, whose matrix is the word embedding itself, "
        f"{tied:,}; with a separate matrix {untied:,}. The document's {t.untied_millions} M is off by "
        f"{millions(short)} even for that. Differs from BERT in: {', '.join(wrong)}.",
        corrected=f"BERT learns its {POSITIONS} positions ({POSITIONS * WIDTH:,} parameters), uses GELU, and ties the "
        "prediction matrix to the word embedding.",
        corrected_holds=learned == t.published and learned - fixed == POSITIONS * WIDTH,
    )


@BOOK.claim(
    "16.e",
    where="Exercise 12.16, line 513",
    says="The gap between 333.1 million and 340 million is explained by biases (0.1 million) and layer norms (0.1 "
    "million).",
    latex=r"24\cdot 4096+24\cdot 4096\ \text{explains}\ 340\cdot10^6-333.1\cdot10^6",
    how="Every part the document leaves out is counted; a cause explains the gap if it covers at least half of it.",
    explained="2*L*4096",
    gap_millions="6.9",
)
def _discrepancy(t: SimpleNamespace) -> Outcome:
    cause = int(value(t.explained, L=LAYERS))
    needed = float(t.gap_millions) * MILLION
    missing = {
        "attention biases": LAYERS * 4 * WIDTH,
        "norms in the blocks": LAYERS * 4 * WIDTH,
        "522 more words": (TRUE_VOCABULARY - EXERCISE_VOCABULARY) * WIDTH,
        "learned positions": POSITIONS * WIDTH,
        "segments": SEGMENTS * WIDTH,
        "norm of the embedding": 2 * WIDTH,
        "pooler": WIDTH * WIDTH + WIDTH,
    }
    counted = 30_720_000 + LAYERS * 12_588_032
    return refuted(
        holds=cause >= needed / 2,
        evidence=f"Biases and norms add {cause:,}, {100 * cause / needed:.0f} % of the {t.gap_millions} M. What the "
        f"document left out: {'; '.join(f'{name} {count:,}' for name, count in missing.items())}; together "
        f"{sum(missing.values()):,}, which leads from {counted:,} to {counted + sum(missing.values()):,}. The rest "
        "of the way to 340 M is rounding in the figure.",
        corrected="The parts left out add 2.3 M and lead to 335.1 M; pooler, positions and the 522 missing words "
        "are most of it, and 340 M itself is 335.1 M rounded to two digits.",
        corrected_holds=counted + sum(missing.values()) == parameters(bert_large(TRUE_VOCABULARY))
        and round(sum(missing.values()) / MILLION, 1) == 2.3,
    )
