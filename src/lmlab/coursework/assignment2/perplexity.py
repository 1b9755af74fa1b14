"""Section 3: what the reported perplexities can and cannot say."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace

from lmlab.coursework.assignment2.characters import VOCABULARY
from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, answered, ill_posed, judged, measured
from lmlab.coursework.lab import Cost, Measured, bench, documentation, ngram, of_documentation, passages, plain
from lmlab.coursework.shared_tools import row
from lmlab.coursework.sheet import derived

claim = book("assignment2").claim

WORDS = f"words:{VOCABULARY}"

claim(
    "3a",
    derivation="given p: M fraction\ngiven t: positive\nlet bits = log(p) / log(t)\n"
    "claim exp(-log(t) * mean(bits)) == exp(-mean(log(p))) where t != 1",
)(derived("The base t does not occur on the right."))


def plain_passages() -> dict[str, str]:
    """The passages with every run of white space as one space."""
    return {name: plain(text) for name, text in passages().items()}


def by_line(model: Measured, text: str, width: int = 10) -> Cost:
    """The cost of a text read with one token a line, as the files of such courses are: lines of several words are unknown.

    The model's own symbols are words, so the whole line becomes one word (its spaces are written as points).
    """
    words = text.split()
    lines = (
        [" ".join(words[i : i + width]) for i in range(0, len(words), width)] if "\n" not in text else text.splitlines()
    )
    return model.cost(" ".join(line.strip().replace(" ", "·") for line in lines if line.strip()))


@claim("3b.2", reported=("5.770625170390492", "24.694984109600412"), vocabulary=VOCABULARY)
def _word_numbers(t: SimpleNamespace) -> Outcome:
    held = documentation()[1]
    model = of_documentation(f"words:{t.vocabulary}")
    words, lines, gibberish = model.cost(held), by_line(model, held), model.cost(codecs.encode(held, "rot13"))
    steps = [
        f"The lab's bigram over {t.vocabulary:,} words on its own kind of text, held out: read word by word {words}; read "
        f"with one token a line {lines}; with all letters moved by 13 {gibberish}."
    ]
    if (ptb := bench("ptb", "ptb.train.txt")) and passages():
        treebank = ngram(f"words:{t.vocabulary}", 2, [plain(ptb)])
        for name, text in passages().items():
            counted = (
                f"{len(text.splitlines())} lines, {sum(not line.strip() for line in text.splitlines())} of them empty"
            )
            steps.append(
                f"The {name} passage ({counted}, {len(text.split())} words) under a bigram of Penn Treebank: word by word "
                f"{treebank.cost(plain(text))}; line by line {by_line(treebank, text)}."
            )
    within = all(lines.perplexity <= float(figure) <= words.perplexity for figure in t.reported)
    possible = all(1 <= float(figure) <= t.vocabulary for figure in t.reported)
    return ill_posed(
        within and lines.unknown_share > 0.95 and 2 * lines.perplexity < words.perplexity,
        *steps,
        f"{row(t.reported)} are possible perplexities of such a model: {possible}; they lie between the two readings of one "
        f"text: {within}.",
        because="The figures hang on how the passage was cut into tokens and how many of these were unknown, which the "
        "document does not say. Nearly all are unknown when a line is one token, far from all when a word is; the more "
        "there are, the lower the figure, because the one unknown symbol is easy to guess.",
        repaired="Only when the unknown words are paid for is the number about the passage: in bits a byte with "
        "spelling, gibberish costs more than text, and lines as tokens more than words.",
        holds=gibberish.bits_per_byte > words.bits_per_byte and lines.bits_per_byte > words.bits_per_byte,
        otherwise="undecided" if possible else "refuted",
    )


@claim("3b.3", reported=("6.897611961776458", "15.843863708201395"), compared="trained-on")  # or "held-out"
def _character_numbers(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    size = len(held) // 2
    model = of_documentation("byte", 4)
    seen, unseen = model.cost(train[:size] if t.compared == "trained-on" else held[size:]), model.cost(held[:size])
    steps = [f"One model, the lab's 4-gram over bytes, on a passage {t.compared}: {seen}; on one held out: {unseen}."]
    plays, both = bench("tinyshakespeare", "input.txt"), plain_passages()
    if plays and both:
        plays = plain(plays)
        steps.append(f"The Shakespeare passage occurs word for word in the usual text: {both['shakespeare'] in plays}.")
        for order in (3, 4):
            models = [ngram("byte", order, [text]) for text in (plays, plays.replace(both["shakespeare"], ""))]
            first, second = ({name: m.cost(text).perplexity for name, text in both.items()} for m in models)
            steps.append(
                f"{order}-gram of the plays: Shakespeare {first['shakespeare']:.2f} ({second['shakespeare']:.2f} if the "
                f"passage is taken out of training), Wikipedia {first['wikipedia']:.2f}."
            )
    possible = all(1 <= float(figure) <= 256 for figure in t.reported)
    return ill_posed(
        possible and seen.perplexity < 0.9 * unseen.perplexity,
        f"{row(t.reported)} are perplexities a character of a model better than guessing: {possible}; in bits a character "
        f"{row((math.log2(float(figure)) for figure in t.reported), '{:.2f}')}.",
        *steps,
        because="A figure on a passage that lies in the training text measures memory; whether it does, and what a character "
        "outside the alphabet costs (the Wikipedia passage has some), the document does not say.",
        repaired="On a passage kept out of training, over bytes so that no character is unknown, the cost in bits a "
        "byte is a figure that can be compared and repeated.",
        holds=unseen.bits_per_byte >= seen.bits_per_byte or t.compared == "held-out",
        otherwise="undecided" if possible else "refuted",
    )


@claim("3b.4", vocabulary=10, order=6, unit="token")  # the unit in which the figures are compared: token or byte
def _lower_is_better(t: SimpleNamespace) -> Outcome:
    held = documentation()[1]
    words, characters = (
        of_documentation(*kind).cost(held) for kind in ((f"words:{t.vocabulary}", 2), ("byte", t.order))
    )
    better = words.bits_per_byte < characters.bits_per_byte
    lower = {"token": words.perplexity < characters.perplexity, "byte": better}[t.unit]
    return judged(
        measured(lower == better),
        f"Held-out text. Word bigram with {t.vocabulary} words: {words}. Character {t.order}-gram: {characters}. The word "
        f"model has the lower figure a {t.unit}: {lower}; it is the better model, in bits a byte of the same text with "
        f"unknown words spelled: {better}.",
        because="One figure is a word with its unknowns for one symbol, the other a character. (Without any known word the "
        "perplexity a word would be 1 on every text.)",
        corrected="Perplexities over different units cannot be compared; in bits a byte, unknown words spelled, the "
        "character model is ahead here.",
        holds=not better,
    )


@claim("3c", unknown_is_cheap=True)
def _explained(t: SimpleNamespace) -> Outcome:
    train, held = documentation()
    words, characters = of_documentation(WORDS), of_documentation("byte", 4)
    texts = {"training text": train, "held-out text": held, "another kind of text": other_prose()}
    texts = {name: text[:20_000] for name, text in texts.items()} | plain_passages()
    steps, cheap, rows = [], True, []
    for name, text in texts.items():
        cost, other = words.cost(text), characters.cost(text)
        nats, known = words.nats(text), words.known(text)
        unknown_nats, known_nats = float(nats[~known].mean()), float(nats[known].mean())
        cheap &= unknown_nats < known_nats / 2
        rows.append((cost.bits_per_byte, other.bits_per_byte, cost.unknown_share))
        steps.append(
            f"{name.capitalize()}: words {cost} (an unknown token costs {unknown_nats:.1f} nats, a known one "
            f"{known_nats:.1f}); characters {other}."
        )
    rising = all(first < second < third for first, second, third in zip(*rows[:3], strict=True))
    return answered(
        cheap == t.unknown_is_cheap and rising,
        *steps,
        answer=f"Three things make the gaps. The units differ: one figure is a word among {VOCABULARY:,}, the other a "
        "character. The unknown symbol is cheap, so a passage of strange words can look easy to the word model. And a "
        "passage costs more, in bits a byte, the further it is from the training text: least where the model was trained "
        "on it, as the character model was on the Shakespeare passage.",
    )


def other_prose() -> str:
    """English of another kind that every Python has: the help texts of some of its modules."""
    texts = []
    for name in ("argparse", "decimal", "email.message", "logging", "random", "statistics", "unittest"):
        module = import_module(name)
        texts.append(module.__doc__ or "")
        texts += [member.__doc__ or "" for _, member in sorted(vars(module).items()) if isinstance(member, type)]
    return plain(" ".join(texts))


def split_and_lowered(text: str) -> str:
    """Reversibly: the sign that ends a word apart (as ·,), a word's capital as the sign ^ and a small letter."""
    text = re.sub(r"(?<=\w)([.,;:!?)])(?= |$)", r" ·\1", text)
    return re.sub(r"(^| )([A-Z])(?=[a-z])", lambda m: f"{m[1]}^ {m[2].lower()}", text)


def restored(text: str) -> str:
    """The text from which `split_and_lowered` made this one."""
    text = re.sub(r"\^ (.)", lambda m: m[1].upper(), text)
    return text.replace(" ·", "")


PREPARATIONS: dict[str, Callable[[str], str]] = {
    "split and lowered": split_and_lowered,
    "none": str,
    "everything small": str.lower,
}


@claim("3d", preparation="split and lowered", small=20)
def _prepared(t: SimpleNamespace) -> Outcome:
    prepare = PREPARATIONS[t.preparation]
    texts = {"held-out text": documentation()}
    if (plays := bench("tinyshakespeare", "input.txt")) and (both := plain_passages()):
        texts |= {name: (plain(plays).replace(both["shakespeare"], ""), text) for name, text in both.items()}
    right, steps = True, []
    for name, (train, held) in texts.items():
        held = re.sub(r"[·^]", "", held)  # the two signs of the preparation must be free
        before = ngram(WORDS, 2, [train]).cost(held)
        after = ngram(WORDS, 2, [prepare(train)]).cost(prepare(held))
        bits = after.bits_per_byte * after.bytes / len(held.encode())
        undone = restored(prepare(held)) == held
        right &= undone and bits < before.bits_per_byte
        steps.append(
            f"{name.capitalize()}: before {before}; {t.preparation}, {100 * after.unknown_share:.0f} % unknown, perplexity "
            f"{after.perplexity:.1f} a token, {bits:.3f} bits a byte of the original ({before.bits_per_byte:.3f} before); "
            f"it can be undone: {undone}."
        )
    tiny = of_documentation(f"words:{t.small}").cost(documentation()[1])
    return answered(
        right,
        *steps,
        f"Shrinking the vocabulary to {t.small} words instead: {tiny}.",
        answer="Split punctuation from words and mark capitals apart, reversibly, so that the passage's words are found in "
        "the vocabulary: fewer unknown words and fewer bits a byte of the original text. A step is an improvement "
        "only if it lowers that number: perplexity a token can rise with it, and can be lowered by throwing words "
        "away.",
    )
