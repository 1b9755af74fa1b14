"""Section 3: what the reported perplexities can and cannot say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import SimpleNamespace

import sympy

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.claim import Outcome, answered, ill_posed, proved, refuted
from lmlab.ledger.kit import formula
from lmlab.ledger.sheet import put
from lmlab.ledger.textlab import (
    Characters,
    Words,
    bench,
    characters_of_documentation,
    documentation,
    plain,
    scrambled,
    words_of_documentation,
)

VOCABULARY = 2000  # of the assignment's word model: 2,000 words, everything else one unknown symbol


@BOOK.claim(
    "3a",
    where="3 a, lines 191-202",
    says="Perplexity does not depend on the base of the logarithm and of the power.",
    latex=r"t^{-\frac1M\sum_i\log_t p_i}=\left(\prod_i p_i\right)^{-1/M}",
    how="In the derivation language for a free base; and symbolically with M = 4 probabilities and a symbol for the "
    "base.",
    derivation="given p: M fraction\ngiven t: positive\nlet bits = log(p) / log(t)\nclaim exp(-log(t) * mean(bits)) "
    "== exp(-mean(log(p)))",
    perplexity="t**(-(log(p1)+log(p2)+log(p3)+log(p4))/(4*log(t)))",
)
def _any_base(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    base = sympy.Symbol("t", positive=True)
    p = sympy.symbols("p1:5", positive=True)
    names = {sympy.Symbol(str(s)): s for s in (base, *p)}
    ratio = sympy.simplify(
        sympy.expand_log(
            sympy.log(formula(t.perplexity).subs(names) * sympy.prod(p) ** sympy.Rational(1, 4)), force=True
        )
    )
    return proved(
        sheet.holds and ratio == 0,
        f"{sheet}. Logarithm of (perplexity with base t) / (geometric mean of 1/p): {ratio}, for every base t.",
    )


@BOOK.claim(
    "3b.2",
    where="3 b, lines 212-214",
    says="The word bigram has perplexity 5.77 on the Shakespeare passage and 24.69 on the Wikipedia passage.",
    latex=r"\mathrm{PPL}_{\rm word}:\ 5.77,\ 24.69",
    how="A 2,000-word bigram on its own kind of text and on the same text with all letters moved by 13, in which "
    "nearly every word is unknown: perplexity a token, and bits a byte with the unknown words spelled. With the "
    "bench corpora also the two passages.",
    reported=("5.770625170390492", "24.694984109600412"),
    model_vocabulary=VOCABULARY,
)
def _word_numbers(t: SimpleNamespace) -> Outcome:
    if not all(1 <= float(number) <= VOCABULARY for number in t.reported):
        return proved(
            False,
            f"{', '.join(t.reported)}: a perplexity is at least 1 and, for a model better than guessing, at most "
            f"{VOCABULARY}.",
        )
    held = documentation()[1]
    model = words_of_documentation(t.model_vocabulary)
    real, noise = model.score(held), model.score(scrambled(held))
    passages = ""
    ptb = bench("ptb", "ptb.train.txt")
    shakespeare, wikipedia = (bench("passages", f"{name}_for_perplexity.txt") for name in ("shakespeare", "wikipedia"))
    if ptb and shakespeare and wikipedia:
        words = Words(ptb, VOCABULARY)
        passages = (
            " A bigram of Penn Treebank's 2,000 words on the passages: Shakespeare "
            f"{words.score(shakespeare)}; Wikipedia {words.score(wikipedia)}."
        )
    return ill_posed(
        flawed=noise.perplexity < real.perplexity / 2,
        evidence=f"Held-out text: {real}. The same text with its letters scrambled: {noise}. The model 'predicts' "
        f"gibberish better, because the one unknown symbol is easy to guess.{passages} A word perplexity of 5.77 "
        "beside 113 on the model's own development text is what a passage of nearly all unknown symbols gives; "
        "which share was unknown, and what its words were, is not said.",
        repaired="Only when the unknown words are paid for is the number about the passage: in bits a byte with "
        "spelling, gibberish costs more than text.",
        repaired_holds=noise.bits_per_byte > real.bits_per_byte,
    )


@BOOK.claim(
    "3b.3",
    where="3 b, lines 216-218",
    says="The character model has perplexity 6.90 on the Shakespeare passage and 15.84 on the Wikipedia passage.",
    latex=r"\mathrm{PPL}_{\rm char}:\ 6.90,\ 15.84",
    how="The same character model on a passage it was trained on and on one it was not; with the bench corpora, "
    "whether the Shakespeare passage occurs in the training text, and both passages under character 3- and 4-grams "
    "trained with and without it.",
    reported=("6.897611961776458", "15.843863708201395"),
    compared="trained-on",  # or "held-out": which passage is set beside the held-out one
)
def _character_numbers(t: SimpleNamespace) -> Outcome:
    if not all(1 <= float(number) <= 256 for number in t.reported):
        return proved(
            False,
            f"{', '.join(t.reported)}: a perplexity a character is at least 1 and, better than guessing, at most the "
            "alphabet.",
        )
    train, held = documentation()
    model = characters_of_documentation()
    size = len(held) // 2
    seen = model.score(train[:size] if t.compared == "trained-on" else held[size:])
    unseen = model.score(held[:size])
    passages = ""
    plays = bench("tinyshakespeare", "input.txt")
    shakespeare, wikipedia = (bench("passages", f"{name}_for_perplexity.txt") for name in ("shakespeare", "wikipedia"))
    if plays and shakespeare and wikipedia:
        passages = f" The Shakespeare passage occurs word for word in the usual training text: {shakespeare in plays}."
        for order in (3, 4):
            with_it, without = Characters(plays, order), Characters(plays.replace(shakespeare, ""), order)
            passages += (
                f" Character {order}-gram: Shakespeare {with_it.score(shakespeare).perplexity:.2f} "
                f"({without.score(shakespeare).perplexity:.2f} if the passage is taken out of training), Wikipedia "
                f"{with_it.score(wikipedia).perplexity:.2f}."
            )
    bits = [math.log2(float(number)) for number in t.reported]
    return ill_posed(
        flawed=seen.perplexity < 0.8 * unseen.perplexity,
        evidence=f"As bits a character the figures are {bits[0]:.2f} and {bits[1]:.2f}: of the order of a small "
        f"character n-gram. On the same kind of text one model has {seen} where it was trained and {unseen} where "
        f"it was not.{passages} A figure on a passage that lies in the training text measures memory; and what a "
        "character outside the alphabet costs (the Wikipedia passage has some) is not said.",
        repaired="On a passage kept out of training, over bytes so that no character is unknown, the cost in bits a "
        "byte is a figure that can be compared and repeated; it is higher than on a passage trained on.",
        repaired_holds=unseen.bits_per_byte > seen.bits_per_byte or t.compared != "trained-on",
    )


@BOOK.claim(
    "3b.4",
    where="3 b, lines 212-218",
    says="5.77 being less than 6.90, the bigram model is the better one on the Shakespeare passage.",
    latex=r"5.77<6.90\ \Rightarrow\ \text{bigram better}",
    how="A word bigram whose perplexity a word is below the perplexity a character of a character 4-gram, on the "
    "same held-out text; both then compared in bits a byte, unknown words spelled. The inference holds if the lower "
    "figure is also the better model.",
    vocabulary=20,
    unit="token",  # the unit in which the figures are compared
)
def _lower_is_better(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    words, characters = Words(train, t.vocabulary).score(held), characters_of_documentation().score(held)
    lower = (
        words.perplexity < characters.perplexity
        if t.unit == "token"
        else words.bits_per_byte < characters.bits_per_byte
    )
    better = words.bits_per_byte < characters.bits_per_byte
    return refuted(
        holds=lower == better,
        evidence=f"Word bigram with {t.vocabulary} words: {words}. Character 4-gram: {characters}. The lower "
        "perplexity belongs to the worse model: one is a word with its unknowns for one symbol, the other a "
        "character. (Without any known word the perplexity a word would be 1 on every text.)",
        corrected="Perplexities over different units cannot be compared; in bits a byte, unknown words spelled, the "
        "character model is ahead here.",
        corrected_holds=characters.bits_per_byte < words.bits_per_byte,
    )


@BOOK.claim(
    "3c",
    where="3 c, lines 220-222",
    says='Explain the results, and the large gaps between passages. (The document: "????".)',
    latex=r"\text{bits a byte}=\frac{\text{nats of tokens}+\text{nats of spellings}}{\ln 2\cdot\text{bytes}}",
    how="Word bigram and character 4-gram on three passages: training text, held-out text of the same kind, and "
    "prose of another kind (the licence and the help texts of Python's own modules). Measured: share of unknown "
    "words, nats of a known and of an unknown token, bits a byte.",
    unknown_is_cheap=True,
)
def _explained(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    words, characters = words_of_documentation(VOCABULARY), characters_of_documentation()
    passages = {
        "training text": train[:20_000],
        "held-out text": held[:20_000],
        "another kind of text": _other_prose()[:20_000],
    }
    passages |= {
        name: text for name in ("shakespeare", "wikipedia") if (text := bench("passages", f"{name}_for_perplexity.txt"))
    }
    lines, costs, bytes_word, bytes_char = [], {}, [], []
    for name, text in passages.items():
        score, other = words.score(text), characters.score(text)
        tokens = words.tokens(text)
        nats = words.counts.nats([tokens])
        unknown = [n for n, token in zip(nats, tokens, strict=True) if token == 0]
        known = [n for n, token in zip(nats, tokens, strict=True) if token != 0]
        costs[name] = (sum(unknown) / max(1, len(unknown)), sum(known) / len(known), score.unknown_share)
        bytes_word.append(score.bits_per_byte)
        bytes_char.append(other.bits_per_byte)
        lines.append(
            f"{name}: words {score} (an unknown token costs {costs[name][0]:.1f} nats, a known one "
            f"{costs[name][1]:.1f}); characters {other}"
        )
    cheap = all(unknown < known / 2 for unknown, known, _ in costs.values())
    ordered = all(series[0] < series[1] < series[2] for series in (bytes_word, bytes_char))
    rising = costs["training text"][2] < costs["held-out text"][2] < costs["another kind of text"][2]
    return answered(
        cheap == t.unknown_is_cheap and ordered and rising,
        "; ".join(lines) + ".",
        "Three things make the gaps. The units differ: one figure is a word among 2,000, the other a character. The "
        "unknown symbol is cheap, so a passage of strange words can look easy to the word model. And a passage "
        "costs more, in bits a byte, the further it is from the training text: least where the model was trained on "
        "it, as the character model was on the Shakespeare passage.",
    )


def _other_prose() -> str:
    """English of another kind that every Python has: the help texts of some of its modules."""
    import argparse
    import decimal
    import email.message
    import logging
    import random
    import statistics
    import unittest

    texts = []
    for module in (argparse, decimal, email.message, logging, random, statistics, unittest):
        texts.append(module.__doc__ or "")
        texts += [member.__doc__ or "" for _, member in sorted(vars(module).items()) if isinstance(member, type)]
    return plain(" ".join(texts))


def split_and_lowered(text: str) -> str:
    """Reversibly: every sign apart (· where no space stood), a word's capital as the sign ^ and a small letter."""
    text = re.sub(r"(\w)([^\w\s])", r"\1 ·\2", text)
    text = re.sub(r"([^\w\s·])(?=[^\s·])", r"\1 ·", text)
    return re.sub(r"(^|[ ·])([A-Z])(?=[a-z])", lambda m: f"{m[1]}^ {m[2].lower()}", text)


def restored(text: str) -> str:
    """The text from which `split_and_lowered` made this one."""
    text = re.sub(r"\^ (.)", lambda m: m[1].upper(), text)
    return text.replace(" ·", "")


@BOOK.claim(
    "3d",
    where="3 d, lines 224-226",
    says='Find a preprocessing step that improves the results. (The document: "?????".)',
    latex=r"\text{bits a byte of the original text, before and after}",
    how="A 2,000-word bigram on whitespace words, and on words with punctuation split off and capitals written as a "
    "sign and a small letter, a preparation that can be undone. Bits a byte of the original held-out text, unknown "
    "words spelled; with the bench corpora also both passages, trained on plays without the passage.",
    preparation="split and lowered",
)
def _prepared(t: SimpleNamespace) -> Outcome:
    preparations: dict[str, Callable[[str], str]] = {
        "split and lowered": split_and_lowered,
        "none": str,
        "everything small": str.lower,
    }
    prepare = preparations[t.preparation]
    texts = {"held-out text": documentation()}
    plays = bench("tinyshakespeare", "input.txt")
    passages = {name: bench("passages", f"{name}_for_perplexity.txt") for name in ("shakespeare", "wikipedia")}
    if plays and passages["shakespeare"]:
        kept = plays.replace(passages["shakespeare"], "")
        texts |= {name: (kept, text) for name, text in passages.items() if text}
    right, lines = True, []
    for name, (train, held) in texts.items():
        held = re.sub(r"[·^]", "", held)  # the two signs of the preparation must be free
        before = Words(train, VOCABULARY).score(held)
        after = Words(prepare(train), VOCABULARY).score(prepare(held))
        bits = (after.nats + after.spelling_nats) / math.log(2) / len(held.encode())
        right &= restored(prepare(held)) == held and bits < 0.99 * before.bits_per_byte
        lines.append(
            f"{name}: before {before}; after {100 * after.unknown_share:.0f} % unknown, perplexity "
            f"{after.perplexity:.1f} a token, {bits:.2f} bits a byte of the original"
        )
    train, held = documentation()
    tiny = Words(train, 20).score(held)
    return answered(
        right,
        "; ".join(lines)
        + f". Shrinking the vocabulary to 20 words instead lowers the perplexity to {tiny.perplexity:.1f} and raises "
        "the cost to "
        f"{tiny.bits_per_byte:.2f} bits a byte: that would be no improvement.",
        "Split punctuation from words and mark capitals apart, reversibly, so that the passage's words are found in "
        "the vocabulary: fewer unknown words and fewer bits a byte of the original text. A step is an improvement "
        "only if it lowers that number: perplexity a token can rise with it, and can be lowered by throwing words "
        "away.",
    )
