"""I1 and I2: a table of four perplexities and two parameter counts, and what is read into it."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from lmlab.ledger.claim import Outcome, conditional, proved, refuted
from lmlab.ledger.kit import gap, generator, parameters
from lmlab.ledger.labmodels import attention, gpt
from lmlab.ledger.textlab import Characters, Words, documentation
from lmlab.ledger.week2.book import BOOK

TABLE = {(3, 2): "8.32", (3, 4): "8.15", (5, 2): "10.63", (5, 4): "6.65"}  # (N, layers): perplexity
TWO_LAYERS, FOUR_LAYERS = 9_721_596, 14_980_860


@BOOK.claim(
    "I1a",
    where="I1, line 79",
    says="The lower the perplexity of a model, the better its quality.",
    latex=r"\mathrm{PPL}_1<\mathrm{PPL}_2\ \Rightarrow\ \text{model 1 is better}",
    how="Perplexity a token against bits a byte of the same held-out text, unknown words spelled: five models over "
    "one unit (bytes), then word models with vocabularies of different size.",
    same_unit=(1, 2, 3, 4, 5),
    vocabularies=(20, 300, 3000),
)
def _lower_is_better(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    same = [Characters(train, order).score(held) for order in t.same_unit]
    mixed = [Words(train, v).score(held) for v in t.vocabularies]

    def agree(scores: list) -> bool:
        by_perplexity = sorted(range(len(scores)), key=lambda i: scores[i].perplexity)
        return by_perplexity == sorted(range(len(scores)), key=lambda i: scores[i].bits_per_byte)

    return conditional(
        with_condition=agree(same),
        without_condition=agree(mixed),
        evidence="One unit, character n-grams of order 1..5: "
        + "; ".join(map(str, same))
        + ". Different vocabularies: "
        + "; ".join(f"{v} words: {s}" for v, s in zip(t.vocabularies, mixed, strict=True))
        + ". There the order is reversed.",
        corrected="For models over the same tokens of the same text, nothing dropped; across vocabularies compare "
        "bits a byte with unknown words paid for.",
    )


def numbers(table: dict[tuple[int, int], str]) -> dict[tuple[int, int], Fraction]:
    """The table in exact fractions."""
    return {place: Fraction(text) for place, text in table.items()}


@BOOK.claim(
    "I1b",
    where="I1 and table 1, lines 81, 87-88",
    says="In the table perplexity decreases with the number of layers at both context sizes.",
    latex=r"8.32\to8.15,\quad10.63\to6.65",
    how="The four numbers compared exactly, and with those of the table.",
    table=TABLE,
    quoted={3: ("8.32", "8.15"), 5: ("10.63", "6.65")},  # N: with 2 and with 4 layers
)
def _with_layers(t: SimpleNamespace) -> Outcome:
    p = numbers(t.table)
    change = {n: p[(n, 4)] - p[(n, 2)] for n in (3, 5)}
    return proved(
        all(c < 0 for c in change.values()) and t.quoted == {n: (t.table[n, 2], t.table[n, 4]) for n in (3, 5)},
        "; ".join(f"N = {n}: {float(p[(n, 2)])} to {float(p[(n, 4)])}, {float(c):+.2f}" for n, c in change.items())
        + ". (Four single runs; no repetition tells how much is chance.)",
    )


@BOOK.claim(
    "I1c",
    where="I1 and table 1, lines 81, 87-88",
    says="Perplexity decreases with N only for 4 layers (8.15 to 6.65) and increases for 2 layers (8.32 to 10.63).",
    latex=r"L=4:\ 8.15\to6.65,\qquad L=2:\ 8.32\to10.63",
    how="The four numbers compared exactly, and with those of the table.",
    table=TABLE,
    quoted={4: ("8.15", "6.65"), 2: ("8.32", "10.63")},  # layers: with N = 3 and with N = 5
)
def _with_context(t: SimpleNamespace) -> Outcome:
    p = numbers(t.table)
    two, four = p[(5, 2)] - p[(3, 2)], p[(5, 4)] - p[(3, 4)]
    return proved(
        two > 0 > four and t.quoted == {layers: (t.table[3, layers], t.table[5, layers]) for layers in (4, 2)},
        f"From N = 3 to N = 5: {float(two):+.2f} with 2 layers, {float(four):+.2f} with 4. (The document's sentence "
        "says 'from N = 2 to N = 5'; the table has no N = 2.)",
    )


class Small(nn.Module):
    """A two-layer Transformer of width 16 that predicts a character from the N - 1 before it."""

    def __init__(self, letters: int, history: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(letters, 16), nn.Embedding(8, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, letters)
        self.history = history

    def forward(self, x_BN: Tensor) -> Tensor:
        """Logits of the next character."""
        places = torch.arange(8 - self.history, 8)  # the last word always stands at the same place
        return self.out(self.blocks(self.words(x_BN) + self.places(places))[:, -1])


def small_perplexity(history: int, seed: int, steps: int) -> tuple[float, int]:
    """Held-out perplexity of a small Transformer, and its parameters."""
    train, held = documentation()
    text = [re.sub(r"[^a-z ]", "", part[:60_000].lower()) for part in (train, held)]
    ids = [torch.tensor([" abcdefghijklmnopqrstuvwxyz".index(c) for c in part]) for part in text]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Small(27, history)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.2e-2)
    rng = generator(seed)
    windows = ids[0].unfold(0, history + 1, 1)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 1.2e-2 * (1 - step / steps)
        batch = windows[torch.from_numpy(rng.integers(0, len(windows), 256))]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        test = ids[1].unfold(0, history + 1, 1)[4 - history :][:8000]
        nats = nn.functional.cross_entropy(model.eval()(test[:, :-1]), test[:, -1])
    return float(nats.exp()), parameters(model)


def blind_to_the_rest() -> float:
    """Difference between a model of N = 3 and one of N = 5 with the same weights that ignores its two earliest places.

    One coordinate of the embedding is kept free of words. The last place writes 1 into it, the two earliest -10⁴; query and key
    read it, so that the earliest words get a score of -10⁴ and no weight at all.
    """
    short, long = (attention(20, 6, n, 5, 4, 3, positions="learned") for n in (3, 5))
    query, key = short.get_parameter("query_KD"), short.get_parameter("key_KD")
    places, all_places = short.get_parameter("place_CD"), long.get_parameter("place_CD")
    with torch.no_grad():
        short.get_parameter("embedding_VD")[:, 0] = 0.0
        places[:, 0] = 0.0
        places[-1, 0] = 1.0
        short.get_parameter("value_XD")[:, 0] = 0.0
        for matrix in (query, key):
            matrix[0], matrix[:, 0] = 0.0, 0.0
            matrix[0, 0] = 1.0
        for name, weight in short.named_parameters():
            if name != "place_CD":
                long.get_parameter(name).copy_(weight)
        all_places[2:] = places
        all_places[:2, 0] = -1e4
        words = torch.tensor([[3, 7, 1, 4], [9, 9, 2, 5], [0, 1, 2, 3]])
        return gap(long.advance(words, long.begin(3)[1])[0], short.advance(words[:, 2:], short.begin(3)[1])[0])


@BOOK.claim(
    "I1e",
    where="I1, line 81",
    says="With 2 layers N = 5 is worse because the model has too few trainable parameters to use the longer context.",
    latex=r"\#\ \text{too small}\ \Rightarrow\ \mathrm{PPL}(N{=}5)>\mathrm{PPL}(N{=}3)",
    how="(1) Whether a longer context can force a worse optimum: a model of N = 5 with the weights of one of N = 3, "
    "set to ignore the two extra words, against it. (2) Whether two layers need many parameters to gain: two-layer "
    "Transformers a thousand times smaller, trained with N = 3 and N = 5 on the same text, two seeds each.",
    steps=150,
)
def _too_few(t: SimpleNamespace) -> Outcome:
    same = blind_to_the_rest()
    found = {(n, seed): small_perplexity(n - 1, seed, t.steps) for n in (3, 5) for seed in (0, 1)}
    count = next(iter(found.values()))[1]
    gains = all(found[(5, seed)][0] < found[(3, other)][0] for seed in (0, 1) for other in (0, 1))
    return refuted(
        holds=not gains,
        evidence="A model of N = 5 set to ignore the earliest two words predicts what that of N = 3 predicts "
        f"(difference {same:.0e}): its best fit is never worse, so too few parameters could explain no gain, but "
        f"not a loss. Two-layer Transformers with {count:,} parameters: perplexity "
        f"{', '.join(f'{found[(3, s)][0]:.2f}' for s in (0, 1))} with N = 3, "
        f"{', '.join(f'{found[(5, s)][0]:.2f}' for s in (0, 1))} with N = 5: they use the longer context with a "
        "thousandth of the parameters.",
        corrected="A rise from N = 3 to N = 5 at equal parameters must come from training or from chance (one run "
        "each); a lack of parameters cannot make the longer context harmful.",
        corrected_holds=same < 1e-5,
    )


@BOOK.claim(
    "I2a",
    where="I2, line 92",
    says="The number of parameters of a Transformer does not depend on the context size N.",
    latex=r"\frac{\partial\#}{\partial N}=0",
    how="The lab's Transformer counted for contexts of 2, 4 and 64 tokens with rotary, sinusoidal and learned "
    "positions.",
    fixed=("rotary", "sinusoidal"),
)
def _context_free(t: SimpleNamespace) -> Outcome:
    counts = {p: [parameters(gpt(30, 2, 16, 2, n, p)) for n in (2, 4, 64)] for p in ("rotary", "sinusoidal", "learned")}
    learned = counts["learned"]
    return conditional(
        with_condition=all(len(set(counts[p])) == 1 for p in t.fixed),
        without_condition=len(set(learned)) == 1,
        evidence="; ".join(f"{p}: {', '.join(f'{c:,}' for c in found)}" for p, found in counts.items())
        + f". Learned positions add the width, 16, for each token of context ({learned[1] - learned[0]} for two more).",
        corrected="True when positions are computed (sinusoidal, rotary) or there are none; a learned table of "
        "positions adds N·d parameters, as in BERT and GPT-2.",
    )


@BOOK.claim(
    "I2b",
    where="I2, line 94",
    says="From 9,721,596 to 14,980,860 is a 65 % increase.",
    latex=r"\frac{14{,}980{,}860-9{,}721{,}596}{9{,}721{,}596}=65\,\%",
    how="Exact arithmetic; a percentage given without decimals must be within half a percent.",
    percent="65",
    corrected="54.1",
)
def _percent(t: SimpleNamespace) -> Outcome:
    increase = 100 * Fraction(FOUR_LAYERS - TWO_LAYERS, TWO_LAYERS)
    ratio = 100 * Fraction(TWO_LAYERS, FOUR_LAYERS)
    return refuted(
        holds=abs(increase - Fraction(t.percent)) <= Fraction(1, 2),
        evidence=f"({FOUR_LAYERS:,} - {TWO_LAYERS:,})/{TWO_LAYERS:,} = {float(increase):.2f} %. The figure of 65 % "
        f"is the smaller count as a share of the larger, {float(ratio):.1f} %.",
        corrected="It is a 54.1 % increase.",
        corrected_holds=abs(increase - Fraction(t.corrected)) <= Fraction(1, 20),
    )


@BOOK.claim(
    "I2c",
    where="I2, line 94",
    says="The number of parameters increases with the number of layers.",
    latex=r"\#(L+1)>\#(L)",
    how="The lab's Transformer counted for 1 to 5 layers: every layer must add the same positive number; and the "
    "table's two counts.",
    layers=(1, 2, 3, 4, 5),
)
def _more_layers(t: SimpleNamespace) -> Outcome:
    counts = [parameters(gpt(30, n, 16, 2, 4)) for n in t.layers]
    steps = {b - a for a, b in itertools.pairwise(counts)}
    block = parameters(gpt(30, 1, 16, 2, 4).blocks[0])
    return proved(
        steps == {block} and block > 0 and FOUR_LAYERS > TWO_LAYERS,
        f"Counted: {', '.join(f'{c:,}' for c in counts)}; each layer adds {block:,}, the parameters of one block. "
        f"The table's counts differ by {(FOUR_LAYERS - TWO_LAYERS) // 2:,} a layer.",
    )


def exhibit(layers: int, width: int, hidden: int, words: int, places: int) -> nn.ModuleList:
    """A Transformer decoder: attention to itself and to a second sequence, learned places, a norm, an output with bias."""
    block = [nn.TransformerDecoderLayer(width, 1, hidden, device="meta") for _ in range(layers)]
    return nn.ModuleList(
        [
            nn.Embedding(words, width, device="meta"),
            nn.Embedding(places, width, device="meta"),
            *block,
            nn.LayerNorm(width, device="meta"),
            nn.Linear(width, words, device="meta"),
        ]
    )


@BOOK.claim(
    "I2d",
    where="table 1, line 87",
    says="Some Transformer has exactly 9,721,596 parameters with 2 layers and 14,980,860 with 4.",
    latex=r"\exists:\ \#(2)=9{,}721{,}596,\ \#(4)=14{,}980{,}860",
    how="By exhibiting one: the difference fixes the block (2,629,632 a layer, a decoder block of width 512 with an "
    "MLP of 512: 10·512² + 16·512), the rest fixes vocabulary and places. Built on torch's meta device and counted.",
    sizes={"width": 512, "hidden": 512, "words": 4348, "places": 9},
    counts={2: TWO_LAYERS, 4: FOUR_LAYERS},
)
def _exhibited(t: SimpleNamespace) -> Outcome:
    found = {layers: parameters(exhibit(layers, **t.sizes)) for layers in t.counts}
    block = parameters(exhibit(3, **t.sizes)) - parameters(exhibit(2, **t.sizes))
    return proved(
        found == t.counts,
        f"Width {t.sizes['width']}, MLP {t.sizes['hidden']}, {t.sizes['words']:,} words, a table of "
        f"{t.sizes['places']} places, final norm, output with bias: "
        + "; ".join(f"{layers} layers {count:,}" for layers, count in found.items())
        + f"; {block:,} a block. It is a block that attends to itself and to a memory; since the table of places has "
        "a fixed length, the count does not change with N.",
    )
