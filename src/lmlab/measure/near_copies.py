"""Whether a measured text was held out: whether it is a copy, exact or near, of what the model was trained on.

A text is looked for in the fingerprints of the training texts, as it is and backwards. A sample of pieces finds copies with
lines in another order, other case or digits, one letter in twelve changed or one word in eight left out. A sample of the
sets of neighbouring words finds copies that were cut into pieces of four words and shuffled, or have their words in reverse
order.

Where the sample cannot tell, or a fifth of the text occurs in the training text, both are compared byte for byte, if the
training text is at hand: a text of which half stands in the training text, in pieces of 50 bytes, is not held out, whatever
the reason. Documents that are shorter than such a piece cannot be compared so. Where they decide, the share of whole documents
that were trained on tells, if the ends of documents are predicted; else nothing is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from lmlab.records import NOT_IN_JSON, JsonRecord
from lmlab.text.fingerprint import WORDS
from lmlab.text.parts import Part
from lmlab.text.shared_substrings import WINDOW, share_in_strings, shared_shares

if TYPE_CHECKING:
    from lmlab.text.fingerprint import Fingerprint, Sample

AtHand = Callable[[str], Part | None]  # the training text of this SHA-256, where its bytes are on disk

Verdict = Literal["held out", "not held out", "unknown"]

WORST_FIRST: tuple[Verdict, ...] = ("not held out", "unknown", "held out")

FEWEST_HASHES = 8  # of a text in the sample, below which nothing can be told
MOST_USUAL = 0.9  # shared by parts of the training text itself, above which nothing can be told
LEAST_MORE = 0.08  # shared beyond what is usual: held-out texts of 14 kinds lie within 0.03
WORTH_TELLING = 0.03  # shared beyond what is usual, from which on a part of the text may be copied
ERRORS = 4.0  # standard errors by which chance may add to that
SPREADS = 3.0  # standard deviations of the tenths of the training text by which one more may share more than they do,
MOST_BEYOND = 0.5  # but no more than this share of what is not usual: a copy shares nearly all of it
REPEATING = 0.2  # shared, from which on the bytes themselves are compared
MOST_SHARED = 0.5  # of the bytes, in pieces that the training text has too: above it the number is mostly memory
LEAST_BYTES = 4 * WINDOW  # of a text whose bytes are compared
SETTING_PIECE = 24  # bytes of a setting that a text has too
FEWEST_CHARACTERS = 8  # different ones in a setting that is looked for: rulers of dashes stand in many texts
MOST_IN_SETTINGS = 0.01  # of a text, in such pieces
ALL_OF_IT = 0.95  # a share that is as good as all
NOT_KNOWN = "there is no fingerprint of all that the model was trained on"
TOO_FEW_PIECES = "the training text has too few different pieces to know a copy of it by"
SPACE_IN_TOKENS = "\u0120"  # how byte-pair tokens write a space
_LONG_STRING = re.compile(rf'"((?:[^"\\]|\\.){{{SETTING_PIECE},}})"')
TOO_SHORT = "the text is too short to be looked for in the training text"


@dataclass(frozen=True, kw_only=True)
class HeldOut(JsonRecord):
    """What a look at the training text showed. copied: the share of the text, at least, that is a copy; None: unknown.

    is_worth_telling: of a text that counts as held out, whether a part of it may be copied: whether it shares more with the
    training text than parts of that share with each other. A text that repeats itself shares much and is no copy.
    asks_for_bytes: whether so much is shared that the bytes of both texts must be compared.
    """

    verdict: Verdict
    copied: float | None
    detail: str
    is_worth_telling: bool = field(default=False, metadata=NOT_IN_JSON)
    asks_for_bytes: bool = field(default=False, metadata=NOT_IN_JSON)
    shared: float = field(
        default=0.0, metadata=NOT_IN_JSON
    )  # of its pieces, by the sample, that occur in the training text


def how_much(copied: float | None, text: str = "this text") -> str:
    """The share of a text that was copied, in words that fit after "trained on"."""
    return text if copied is None or copied >= ALL_OF_IT else f"at least {copied:.0%} of {text}, exactly or nearly"


def held_out(
    texts: Sequence[Fingerprint], part: Part, at_hand: AtHand | None = None, settings: Sequence[str] = ()
) -> HeldOut:
    """Look for a text in all texts that a model was trained on, and in the strings of its settings; the worst counts."""
    found = [_look(text, part, at_hand) for text in texts] or [_unknown(NOT_KNOWN)]
    telling = [string for string in settings if len(set(string)) >= FEWEST_CHARACTERS]
    if (share := share_in_strings(part, telling, SETTING_PIECE)) > MOST_IN_SETTINGS:
        detail = f"{share:.1%} of it stands in the settings of the model or its tokenizer, in pieces of {SETTING_PIECE} bytes"
        found.append(HeldOut(verdict="not held out", copied=share, detail=f"{detail} or more"))
    return min(found, key=lambda one: (WORST_FIRST.index(one.verdict), -(one.copied or 0.0)))


def strings_in(settings: Any) -> Iterator[str]:
    """All strings in a JSON document, names included."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, Mapping):
        for name, value in settings.items():
            yield str(name)
            yield from strings_in(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from strings_in(value)


def long_strings(document: str) -> list[str]:
    """All strings of a JSON document, as they are written there, that are long enough to hold a piece of a text."""
    return [string.replace(SPACE_IN_TOKENS, " ") for string in _LONG_STRING.findall(document)]


def _unknown(why: str) -> HeldOut:
    return HeldOut(verdict="unknown", copied=None, detail=why)


def _look(text: Fingerprint, part: Part, at_hand: AtHand | None) -> HeldOut:
    """What one fingerprint shows, and where that is not enough, the bytes."""
    if not text.is_known:
        return _unknown(NOT_KNOWN)
    has_samples = len(text.pieces.hashes) or (text.documents is not None and part.has_ends)
    found = _look_in_samples(text, part) if has_samples else _unknown(TOO_FEW_PIECES)
    if found.verdict == "not held out" or not (found.verdict == "unknown" or found.asks_for_bytes):
        return found
    training = at_hand(text.sha256) if at_hand is not None and text.sha256 else None
    compared = None if training is None else _compare(training, part, found, text.pieces.usual)
    if compared is not None:
        return compared
    if found.shared > MOST_SHARED:  # whether that is repetition or a copy, only the bytes can tell
        return _unknown(found.detail)
    return found


def _look_in_samples(text: Fingerprint, part: Part) -> HeldOut:
    forwards = text.look_for(part)
    found = _judge(text.pieces, *forwards["pieces"], "of its pieces")
    backwards = text.look_for(part, backwards=True)
    of_documents = []
    if text.documents is not None and "documents" in forwards:
        looks = ((forwards, "of its documents"), (backwards, "of its documents, read backwards,"))
        of_documents = [_judge(text.documents, *look["documents"], what) for look, what in looks]
        if _in_short_documents(part) > MOST_SHARED:
            found = of_documents[0]
    others = [
        _judge(text.words, *forwards["words"], f"of its sets of {WORDS} neighbouring words"),
        _judge(text.pieces, *backwards["pieces"], "of its pieces, read backwards,"),
        _judge(text.words, *backwards["words"], f"of its sets of {WORDS} neighbouring words, read backwards,"),
    ]
    copies = [one for one in [found, *of_documents, *others] if one.verdict == "not held out"]
    return max(copies, key=lambda one: one.copied or 0.0, default=found)


def _judge(sample: Sample, hashes: int, shared: int, what: str) -> HeldOut:
    """Whether the share of a text's hashes that a training text has too is what is usual there."""
    if hashes < FEWEST_HASHES:
        return _unknown(TOO_SHORT)
    if sample.usual > MOST_USUAL:
        return _unknown(
            f"{sample.usual:.0%} of the training text occurs in it more than once, so that no copy can be told from it"
        )
    share, usual = shared / hashes, sample.usual
    by_chance = ERRORS * math.sqrt(max(usual * (1.0 - usual), 1.0 / hashes) / hashes)
    numbers = f"{share:.1%} {what} occur in the training text, where {usual:.1%} would be usual for held-out text"
    of_its_kind = min(SPREADS * sample.spread, MOST_BEYOND * (1.0 - usual))
    copied = (share - usual) / (1.0 - usual)
    if share - usual >= max(LEAST_MORE, by_chance, of_its_kind):
        detail = f"{numbers}: at least {copied:.0%} of it is a copy, exact or near, of what the model was trained on"
        return HeldOut(verdict="not held out", copied=copied, detail=detail)
    is_partly_copied = share - usual > max(WORTH_TELLING, by_chance)
    if is_partly_copied:
        numbers += f": about {copied:.0%} of it may be copied from there"
    return HeldOut(
        verdict="held out",
        copied=max(0.0, share - usual),
        detail=numbers,
        is_worth_telling=is_partly_copied,
        asks_for_bytes=is_partly_copied or share >= REPEATING,
        shared=share,
    )


def _compare(training: Part, part: Part, sampled: HeldOut, usual: float) -> HeldOut | None:
    """What the bytes of both texts show, where the samples leave it open; None: too few of them can be compared.

    usual: the share of the training text's sampled pieces that occur in another tenth of it. Pieces are compared without case
    and digits, so they repeat at least as often as the bytes do: a text whose pieces seldom repeat is not searched for
    repetitions of its bytes.
    """
    forwards, backwards = shared_shares(training, part)
    share, way = (backwards, " backwards") if backwards > forwards else (forwards, "")
    standing = f"{share:.1%} of it stands in the training text{way}, in pieces of {WINDOW} bytes or more"
    if share > MOST_SHARED:
        detail = f"{standing}: the number shows what was remembered"
        return HeldOut(verdict="not held out", copied=share, detail=detail)
    if max(share + _in_short_documents(part), _in_short_documents(training)) > MOST_SHARED:
        return None
    if usual > REPEATING and _repetition(training) > MOST_SHARED:
        why = "the training text repeats itself, so that only exact copies can be found: take the repetitions out of it"
        return _unknown(f"{why} ({standing})")
    if sampled.verdict != "unknown":
        return replace(sampled, detail=f"{sampled.detail}; {standing}")
    if part.bytes < LEAST_BYTES:
        return _unknown(TOO_SHORT)
    return HeldOut(verdict="held out", copied=share, detail=standing, is_worth_telling=share > WORTH_TELLING)


def _in_short_documents(part: Part) -> float:
    """The share of a text that stands in documents shorter than the pieces that are compared."""
    return sum(document.size for document in part.documents if document.size < WINDOW) / max(1, part.bytes)


def _repetition(training: Part) -> float:
    """The share of the second half of a text that stands in the first, in pieces of `WINDOW` bytes."""
    first, second, left = [], [], training.bytes // 2
    for document in training.documents:
        size = min(document.size, left)
        left -= size
        middle = document.start + size
        first.append(replace(document, stop=middle))
        second.append(replace(document, start=middle))
    return shared_shares(Part("first half", first), Part("second half", second), both_ways=False)[0]
