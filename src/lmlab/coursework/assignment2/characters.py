"""Sections 1 d and 2: a reported perplexity, characters against words, and what a falling loss shows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, ill_posed, judged, measured
from lmlab.coursework.lab import (
    Measured,
    bench,
    documentation,
    feedforward,
    gpt,
    ngram,
    of_documentation,
    plain,
    small_letters,
    stream,
    taught,
    tokenizer_of,
)
from lmlab.coursework.lab11.costs import operations
from lmlab.coursework.shared_tools import NOTE, estimate, generator, listed, number, parameters, row, value

claim = book("assignment2").claim

VOCABULARY = 2000  # of the assignment's word model: 2,000 words, everything else one unknown symbol


@claim("1d.2", reported="113.31395087517392", vocabularies=(20, 100, 300, 1000, 3000, 4000))
def _reported(t: SimpleNamespace) -> Outcome:
    held = documentation()[1]
    costs = {v: of_documentation(f"words:{v}").cost(held) for v in t.vocabularies}
    ladder = list(costs.values())
    rising = all(a.perplexity < b.perplexity for a, b in itertools.pairwise(ladder))
    opposite = len(ladder) > 1 and rising and all(ladder[0].bits_per_byte > b.bits_per_byte for b in ladder[1:])
    within = ladder[0].perplexity <= float(t.reported) <= ladder[-1].perplexity
    possible = 1 <= float(t.reported) <= VOCABULARY
    measured_too = ""
    if (ptb := bench("ptb", "ptb.train.txt")) and (valid := bench("ptb", "ptb.valid.txt")):
        words = ngram(f"words:{VOCABULARY}", 2, [plain(ptb)])
        measured_too = f"Penn Treebank with {VOCABULARY:,} words, its line ends left out: {words.cost(plain(valid))}."
    return ill_posed(
        opposite and within,
        "One text, one kind of model, only the vocabulary differs: " + listed(costs, "{} words: {}") + ".",
        measured_too,
        f"A perplexity lies between 1 and, for a model better than guessing, the {VOCABULARY:,} words: {t.reported} does: "
        f"{possible}. It lies among those of this one text: {within}.",
        because="The report is true or false of a file, weights and a treatment of unknown words that the document does not "
        "give; nothing in it can decide that, and read as a measure of quality the figure says nothing, for the smallest "
        "vocabulary has the lowest perplexity and is the worst model.",
        repaired="With unknown words as one symbol, a smaller vocabulary gives a lower perplexity, and the smallest the worst "
        "model; bits a byte with unknown words spelled out orders the models by what they predict.",
        holds=opposite,
        otherwise="undecided" if possible else "refuted",
    )


@claim("2a.1", outside="日本語")
def _unknown_words(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    letters = set(train)
    model = ngram("char", 4, [train[:100_000]])
    inside = [w for w in sorted(set(held.split(" ")) - set(train.split(" "))) if set(w) <= letters][:500]
    bits = [float(model.nats(word).sum()) / math.log(2) for word in inside]
    strange = [c for c in t.outside if c not in letters]
    in_bytes = float(ngram("byte", 4, [train[:100_000]]).nats(t.outside).sum()) / math.log(2)
    return conditional(
        exact(len(inside) > 100 and all(map(math.isfinite, bits))),
        measured(not strange),
        f"{len(inside)} unseen words spelled with known characters, such as {row([w for w in inside if w.isalpha()][:4])}: "
        f"{np.mean(bits):.0f} bits on average, {max(bits):.0f} at most.",
        f"'{t.outside}' has {len(strange)} characters outside the {len(letters)} of the training text. Over bytes it costs "
        f"{in_bytes:.0f} bits.",
        because="A model over the characters of its text has no symbol for these: the vocabulary of characters is fixed too.",
        precisely="A character model handles every unknown word whose characters it knows; over bytes, every word.",
    )


@claim("2a.2", memory="V*d + 12*L*d**2 + 2*L*T*d", width=256, layers=4, short=100, long=20_000)
def _memory(t: SimpleNamespace) -> Outcome:
    text = documentation()[0]
    words = text.split(" ")
    vocabulary = {"words": len(set(words)), "characters": len(set(text))}

    def held(unit: str, read: int) -> float:
        tokens = read if unit == "words" else len(" ".join(words[:read]))
        return number(t.memory, V=vocabulary[unit], d=t.width, L=t.layers, T=tokens) / 1e6

    deep, shallow = (gpt(vocabulary["words"], n, t.width, 4, 8) for n in (t.layers, 1))
    matrices = sum(p.numel() for p in shallow.blocks[0].parameters() if p.ndim == 2)
    added = parameters(deep) - parameters(shallow)
    right = (
        value(t.memory, V=vocabulary["words"], d=t.width, L=t.layers, T=0)
        == vocabulary["words"] * t.width + t.layers * matrices
    )
    short, long = ({unit: held(unit, read) for unit in vocabulary} for read in (t.short, t.long))
    return conditional(
        exact(right and vocabulary["characters"] < vocabulary["words"] / 10 and short["characters"] < short["words"]),
        measured(right and long["characters"] < long["words"]),
        f"Vocabulary: {vocabulary['words']:,} words, {vocabulary['characters']} characters. A Transformer of width {t.width} "
        f"and {t.layers} layers holds {t.memory} numbers (weights, keys and values); the lab's has the same weights in its "
        f"matrices: {right} (each further layer adds {added / (t.layers - 1):,.0f}, norms included).",
        f"Reading {t.short} words: {short['characters']:.2f} million numbers as characters, {short['words']:.2f} as words. "
        f"Reading {t.long:,} words: {long['characters']:.1f} against {long['words']:.1f}.",
        because=f"The text is {len(text) / len(words):.1f} times as many tokens, and each keeps its keys and values.",
        precisely="The weights are fewer; the memory as a whole is less only while the embedding saved, (|V_{word}| - "
        "|V_{char}|)·d, outweighs the longer sequence's activations.",
    )


def new_words(text: str, made: str) -> list[str]:
    """Words of 5 to 12 letters that the text does not have."""
    known = set(text.split())
    return sorted({w for w in made.split() if 5 <= len(w) <= 12 and w.isalpha() and w not in known})


@claim("2a.3", order=5, samples=50)
def _suffixes(t: SimpleNamespace) -> Outcome:
    text = small_letters(documentation()[0])
    real = [w for w in text.split() if 5 <= len(w) <= 12]
    endings = [e for e, _ in Counter(w[-3:] for w in real).most_common(20)]
    new, chance = (
        new_words(text, " ".join(ngram("char", order, [text]).written(t.samples, 400))) for order in (t.order, 1)
    )
    found, by_chance, natural = (
        estimate(np.array([float(w[-3:] in endings) for w in words] or [0.0, 0.0]))
        for words in (new, chance, sorted(set(real)))
    )
    halfway = (by_chance.mean + natural.mean) / 2
    return judged(
        measured(len(new) > 100 and found.low > halfway, found.high < halfway),
        f"The lab's character model of order {t.order} writes {t.samples} texts. Of its {len(new)} words of 5 to 12 letters "
        f"that the training text does not have, a share of {found} ends in one of the {len(endings)} commonest endings; of "
        f"real words {natural.mean:.3f}; of words made letter by letter {by_chance.mean:.3f}. Learned means: nearer to real "
        f"words than to chance, {halfway:.3f}, at the end of the interval.",
        f"For example: {row([w for w in new if w[-3:] in endings][:8])}.",
        note=NOTE,
    )


@claim("2a.5", cost="2*T*(12*L*d**2 + V*d) + 4*L*T*W*d", read=2000)
def _fewer_tokens(t: SimpleNamespace) -> Outcome:
    text = " ".join(documentation()[0].split(" ")[: t.read])
    tokens, alphabet = {"words": t.read, "characters": len(text)}, len(set(text))

    def billions(unit: str, d: int, layers: int, vocabulary: int, window: int | None) -> float:
        n, v = tokens[unit], vocabulary if unit == "words" else alphabet
        return number(t.cost, T=n, W=min(n, window or n), L=layers, d=d, V=v) / 1e9

    n, d, v = 30, 16, 50  # counted while it runs: attention with its projections, the MLP, the output layer
    right = value(t.cost, T=n, W=n, L=1, d=d, V=v) == operations(n, n, d) + 2 * (2 * n * d * 4 * d) + 2 * n * v * d
    big, small = ({u: billions(u, *shape) for u in tokens} for shape in ((512, 6, 10_000, None), (32, 1, 50_000, 64)))
    return conditional(
        exact(right and tokens["words"] < tokens["characters"] and big["words"] < big["characters"]),
        measured(right and small["words"] < small["characters"]),
        f"A Transformer costs {t.cost} operations: what is counted while one runs: {right}.",
        f"The text is {tokens['words']:,} words or {tokens['characters']:,} characters. Width 512, 6 layers, 10,000 words: "
        f"{big['words']:.0f} billion operations as words, {big['characters']:.0f} as characters. Width 32, 1 layer, 50,000 "
        f"words, a window of 64: {small['words']:.1f} billion as words, {small['characters']:.2f} as characters.",
        because="There the output layer, tokens × vocabulary × width, decides, and attention hardly counts.",
        precisely="Fewer tokens, yes; cheaper only when blocks and attention outweigh the output layer over the "
        "larger vocabulary.",
    )


def learning_curve(text: str, held: str, steps: int) -> tuple[float, float, float, float]:
    """Nats a character: training loss at the end, that of a bag of characters, and both on held-out text."""
    tokenizer = tokenizer_of("char", text + held)
    model, bag = feedforward(tokenizer, 16, 4, 64), ngram("char", 1, [text])
    curve = taught(model, stream(tokenizer, [text]), steps, 1e-2, rows=16)
    unseen = float(np.mean(Measured(tokenizer, model).nats(held)))
    return float(np.mean(curve[-20:])), float(np.mean(bag.nats(text))), unseen, float(np.mean(bag.nats(held)))


@claim("2b", evidence="training loss", steps=300)  # or "held-out loss"
def _loss_plot(t: SimpleNamespace) -> Outcome:
    text = small_letters(documentation()[0][:12_000])
    real, held = text[:4000], text[4000:7000]
    rng = generator(3)
    noise, noise_held = ("".join(np.array(list(part))[rng.permutation(len(part))]) for part in (real, held))
    curves = {"text": learning_curve(real, held, t.steps), "shuffled": learning_curve(noise, noise_held, t.steps)}
    falls = [training < bag for training, bag, *_ in curves.values()]
    generalises = [unseen < bag for *_, unseen, bag in curves.values()]
    shown = {"training loss": falls, "held-out loss": generalises}[t.evidence]
    return ill_posed(
        shown == [True, True],
        f"The lab's feed-forward model after {t.steps} steps on {len(real):,} characters of text, and on the same characters "
        "in random order, where there is nothing to learn; nats a character, those of a bag of characters in brackets. "
        + "; ".join(
            f"{name}: training loss {a:.2f} ({b:.2f}), held out {c:.2f} ({d:.2f})"
            for name, (a, b, c, d) in curves.items()
        )
        + ".",
        because="The training loss falls below the bag's in both; it cannot tell learning from memorising. And the figure "
        "itself is not in the document.",
        repaired="A loss on held-out text below that of a bag of characters shows that the network has learned "
        "something about the text.",
        holds=generalises == [True, False],
        otherwise=measured(shown == [True, False]),
    )
