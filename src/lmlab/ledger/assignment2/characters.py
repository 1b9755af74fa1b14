"""Sections 1 d and 2: a reported perplexity, characters against words, and what a falling loss shows."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.claim import Outcome, conditional, ill_posed, proved, supported
from lmlab.ledger.kit import generator, parameters, value
from lmlab.ledger.lab11.costs import operations
from lmlab.ledger.textlab import Counts, Words, bench, documentation

VOCABULARY = 2000  # of the assignment's word model: 2,000 words, everything else one unknown symbol
SIZES = (20, 100, 300, 1000, 3000)


@BOOK.claim(
    "1d.2",
    where="1 d, line 163",
    says="The neural bigram model reaches a perplexity of 113.31395087517392 on the development text.",
    latex=r"\mathrm{PPL}_{\rm dev}=113.31395087517392",
    how="The text and the weights are not given, so the number cannot be recomputed. What can be shown: bigrams "
    "over the same text with vocabularies of 20 to 3,000 words, everything else one unknown symbol: perplexity a "
    "token and bits a byte with the unknown words spelled out. A perplexity must also lie between 1 and the number "
    "of symbols.",
    reported="113.31395087517392",
    vocabularies=SIZES,
)
def _reported(t: SimpleNamespace) -> Outcome:
    number = float(t.reported)
    if not 1 <= number <= VOCABULARY:
        return proved(False, f"{t.reported} is no perplexity of a model over {VOCABULARY} words that beats guessing.")
    train, held = documentation()
    scores = {v: Words(train, v).score(held) for v in t.vocabularies}
    ladder = list(scores.values())
    opposite = all(
        a.perplexity < b.perplexity and a.bits_per_byte > b.bits_per_byte for a, b in itertools.pairwise(ladder)
    )
    measured = ""
    ptb, valid = bench("ptb", "ptb.train.txt"), bench("ptb", "ptb.valid.txt")
    if ptb and valid:
        measured = (
            f" On Penn Treebank, trained on its text and {VOCABULARY} words: {Words(ptb, VOCABULARY).score(valid)}."
        )
    return ill_posed(
        flawed=opposite and len(ladder) > 1,
        evidence="Same text, same model, only the vocabulary differs: "
        + "; ".join(f"{v} words: {s}" for v, s in scores.items())
        + f".{measured} Any number between these can be reported for the same quality; without the text, the "
        "vocabulary and the treatment of "
        "unknown words the figure says nothing, and its 17 digits least of all.",
        repaired="With unknown words as one symbol, a smaller vocabulary gives a lower perplexity and a worse "
        "model; bits a byte with unknown words spelled out orders the models by what they predict.",
        repaired_holds=opposite,
    )


def alphabet(text: str) -> dict[str, int]:
    """The characters of a text, numbered."""
    return {character: i for i, character in enumerate(sorted(set(text)))}


@BOOK.claim(
    "2a.1",
    where="2 a, line 168",
    says="Character models are not limited to a fixed vocabulary and can handle unknown words.",
    latex=r"p(w)>0\ \text{for every word}\ w",
    how="A character 4-gram over the characters of its training text: the probability of 500 words it has never "
    "seen, and of a word with a character that text lacks; beside it a model over bytes.",
    outside="日本語",
)
def _unknown_words(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    letters = alphabet(train)
    model = Counts([[letters[c] for c in train[:100_000]]], 4, symbols=len(letters))
    seen = set(train.split(" "))
    inside = [w for w in sorted(set(held.split(" ")) - seen) if set(w) <= set(letters)][:500]
    costs = [float(model.nats([[letters[c] for c in word]]).sum()) for word in inside]
    strange = [c for c in t.outside if c not in letters]
    in_bytes = float(Counts([list(train[:100_000].encode())], 4, symbols=256).nats([list(t.outside.encode())]).sum())
    return conditional(
        with_condition=len(inside) > 100 and all(math.isfinite(c) for c in costs),
        without_condition=not strange,
        evidence=f"{len(inside)} unseen words spelled with known characters, such as "
        f"{', '.join([w for w in inside if w.isalpha()][:4])}: all have positive probability, "
        f"{sum(costs) / len(costs) / math.log(2):.0f} bits on average. '{t.outside}' has {len(strange)} characters "
        f"outside the {len(letters)} of the training text and no probability at all: the vocabulary of characters "
        f"is fixed too. Over bytes the same word costs {in_bytes / math.log(2):.0f} bits.",
        corrected="A character model handles every unknown word whose characters it knows; over bytes, every word.",
    )


def transformer_block(width: int) -> int:
    """Weights of a Transformer block without biases and norms: four maps of attention, and an MLP four times as wide."""
    shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
    return sum(parameters(nn.Linear(*shape, bias=False, device="meta")) for shape in shapes)


@BOOK.claim(
    "2a.2",
    where="2 a, line 169",
    says="The character vocabulary is smaller, which reduces memory.",
    latex=r"|V_{\rm char}|\ll|V_{\rm word}|\ \Rightarrow\ \text{less memory}",
    how="Both vocabularies counted on Python's documentation; then all numbers a Transformer of width 256 and 4 "
    "layers holds (weights, keys and values) while it reads 100 words and 20,000 words, as words and as characters.",
    memory="V*d + 12*L*d**2 + 2*L*T*d",
)
def _memory(t: SimpleNamespace) -> Outcome:
    text = documentation()[0]
    words = text.split(" ")
    vocabulary = {"words": len(set(words)), "characters": len(set(text))}

    def held(unit: str, read: int) -> int:
        tokens = read if unit == "words" else len(" ".join(words[:read]))
        return int(value(t.memory, V=vocabulary[unit], d=256, L=4, T=tokens))

    weights = 4 * transformer_block(256) + vocabulary["words"] * 256
    right = int(value(t.memory, V=vocabulary["words"], d=256, L=4, T=0)) == weights
    short, long = ({unit: held(unit, read) for unit in vocabulary} for read in (100, 20_000))
    return conditional(
        with_condition=right
        and vocabulary["characters"] < vocabulary["words"] / 10
        and short["characters"] < short["words"],
        without_condition=right and long["characters"] < long["words"],
        evidence=f"Vocabulary: {vocabulary['words']:,} words, {vocabulary['characters']} characters. Reading 100 "
        f"words: {short['characters'] / 1e6:.2f} million numbers as characters, {short['words'] / 1e6:.2f} as "
        f"words. Reading 20,000 words: {long['characters'] / 1e6:.1f} against {long['words'] / 1e6:.1f}: the text "
        f"is {len(text) / len(words):.1f} times as many tokens, and each keeps its keys and values.",
        corrected="The weights are fewer; the memory as a whole is less only while the embedding saved, (|V_{word}| - "
        "|V_{char}|)·d, outweighs the longer sequence's "
        "activations.",
    )


@BOOK.claim(
    "2a.3",
    where="2 a, line 171",
    says="Character models learn prefixes and suffixes and can produce well-formed words that the training text does "
    "not contain.",
    latex=r"p(\text{suffix}\mid\text{stem})\ \text{is learned}",
    how="A character 5-gram samples 20,000 characters. Of the words it makes up (not in the training text, 5 to 12 "
    "letters), the share that ends in one of the 20 commonest endings of three letters, beside the share among "
    "words with their letters shuffled; more than three times as many counts as learned.",
    order=5,
)
def _suffixes(t: SimpleNamespace) -> Outcome:
    text = re.sub(r"[^a-z ]", "", documentation()[0].lower())
    known = set(text.split())
    endings = {e for e, _ in Counter(w[-3:] for w in text.split() if len(w) > 5).most_common(20)}
    made = _sample(text, t.order, 20_000)
    new = sorted({w for w in made.split() if 5 <= len(w) <= 12 and w not in known})
    rng = generator(1)
    shuffled = ["".join(rng.permutation(list(w))) for w in new]
    share, chance = (sum(w[-3:] in endings for w in group) / max(1, len(group)) for group in (new, shuffled))
    examples = [w for w in new if w[-3:] in endings][:8]
    return supported(
        len(new) > 100 and share > 3 * chance,
        f"{len(new)} new words; {100 * share:.0f} % end like common words, {100 * chance:.1f} % when shuffled. For "
        f"example: {', '.join(examples)}. A model over a closed set of words can make none.",
    )


def _sample(text: str, order: int, length: int) -> str:
    """Text drawn from the relative frequencies of n-grams of characters; an unseen context starts afresh."""
    followers: dict[str, str] = {}
    for i in range(len(text)):
        context = text[max(0, i - order + 1) : i]
        followers[context] = followers.get(context, "") + text[i]
    rng = generator(2)
    out = text[: order - 1]
    for _ in range(length):
        choices = followers.get(out[len(out) - order + 1 :] if order > 1 else "", " ")
        out += choices[rng.integers(len(choices))]
    return out


@BOOK.claim(
    "2a.5",
    where="2 a, line 178",
    says="Word models process fewer tokens, and since attention costs O(l²) they are computationally more efficient.",
    latex=r"l_{\rm word}<l_{\rm char}\ \Rightarrow\ \text{less computation}",
    how="Multiplications and additions of a Transformer for 2,000 words of text: blocks, attention and output layer "
    "over the vocabulary. Once wide and deep (d = 512, 6 layers, 10,000 words), once small (d = 32, 1 layer, 50,000 "
    "words, a window of 64 tokens).",
    cost="2*T*(12*L*d**2 + V*d) + 4*L*T*W*d",
)
def _fewer_tokens(t: SimpleNamespace) -> Outcome:
    text = " ".join(documentation()[0].split(" ")[:2000])
    tokens = {"words": 2000, "characters": len(text)}

    def cost(unit: str, d: int, layers: int, vocabulary: int, window: int | None) -> int:
        n = tokens[unit]
        return int(value(t.cost, T=n, W=min(n, window or n), L=layers, d=d, V=vocabulary if unit == "words" else 100))

    n, d, v = 30, 16, 50  # counted while it runs: attention with its projections, the MLP, the output layer
    right = int(value(t.cost, T=n, W=n, L=1, d=d, V=v)) == operations(n, n, d) + 16 * n * d**2 + 2 * n * v * d
    big, small = ({u: cost(u, *shape) for u in tokens} for shape in ((512, 6, 10_000, None), (32, 1, 50_000, 64)))
    return conditional(
        with_condition=right and tokens["words"] < tokens["characters"] and big["words"] < big["characters"],
        without_condition=right and small["words"] < small["characters"],
        evidence=f"The text is {tokens['words']:,} words or {tokens['characters']:,} characters. Wide and deep: "
        f"{big['words'] / 1e9:.0f} billion operations as words, {big['characters'] / 1e9:.0f} as characters. Small "
        f"with many words: {small['words'] / 1e9:.1f} billion as words, {small['characters'] / 1e9:.2f} as "
        "characters: there the output layer, tokens × vocabulary × width, decides, and attention hardly counts.",
        corrected="Fewer tokens, yes; cheaper only when blocks and attention outweigh the output layer over the "
        "larger vocabulary.",
    )


class Window(nn.Module):
    """A small network that predicts a character from the three before it."""

    def __init__(self, letters: int, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.hidden = nn.Linear(3 * 16, width)
        self.out = nn.Linear(width, letters)

    def forward(self, x_B3: torch.Tensor) -> torch.Tensor:
        """Log-probabilities, B×V."""
        return torch.log_softmax(self.out(torch.tanh(self.hidden(self.embed(x_B3).flatten(1)))), dim=1)


def learning_curve(text: str, held: str, steps: int = 250) -> tuple[float, float, float, float]:
    """Nats a character: training loss before and after, held-out loss after, held-out loss of a bag of characters."""
    letters = alphabet(text + held)

    def windows(s: str) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.tensor([letters[c] for c in s])
        return ids.unfold(0, 4, 1)[:, :3], ids[3:]

    (x, y), (x_held, y_held) = windows(text), windows(held)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Window(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = last = 0.0
    for step in range(steps):
        loss = -model(x).gather(1, y[:, None]).mean()
        first = float(loss.detach()) if step == 0 else first
        last = float(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        unseen = float(-model(x_held).gather(1, y_held[:, None]).mean())
    frequency = torch.bincount(y, minlength=len(letters)).double() + 0.5
    bag = float(-(frequency / frequency.sum()).log()[y_held].mean())
    return first, last, unseen, bag


@BOOK.claim(
    "2b",
    where="2 b, lines 180-185",
    says="The plot of the training loss shows that the network was learning. (The figure is missing.)",
    latex=r"L_{\rm train}\downarrow\ \Rightarrow\ \text{learning}",
    how="A small network on 4,000 characters of text and on the same characters in random order, where there is "
    "nothing to learn: the fall of the training loss, and the held-out loss against that of a bag of characters.",
    evidence="training loss",  # or "held-out loss"
)
def _loss_plot(t: SimpleNamespace) -> Outcome:
    text = re.sub(r"[^a-z ]", "", documentation()[0][:12_000].lower())
    real, held = text[:4000], text[4000:7000]
    rng = generator(3)
    noise, noise_held = ("".join(np.array(list(part))[rng.permutation(len(part))]) for part in (real, held))
    a, b = learning_curve(real, held), learning_curve(noise, noise_held)
    falls = [curve[1] < 0.8 * curve[0] for curve in (a, b)]
    generalises = [curve[2] < curve[3] for curve in (a, b)]
    shown = falls if t.evidence == "training loss" else generalises
    return ill_posed(
        flawed=shown[0] == shown[1],
        evidence=f"Text: training loss {a[0]:.2f} → {a[1]:.2f} nats a character, held out {a[2]:.2f} (bag of "
        f"characters {a[3]:.2f}). Shuffled characters: training loss {b[0]:.2f} → {b[1]:.2f}, held out {b[2]:.2f} "
        f"(bag {b[3]:.2f}). The training curve falls in both; it cannot tell learning from memorising. And the "
        "figure itself is not in the document.",
        repaired="A loss on held-out text below that of a bag of characters shows that the network has learned "
        "something about the text.",
        repaired_holds=generalises == [True, False],
    )
