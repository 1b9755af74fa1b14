"""Dividing a text into the tokens of a `words` tokenizer: the plain way (`split`), and as numbers, fast (`WordTable`).

The fast way makes no Python object of a token. Words are found in the bytes of a chunk; one of up to sixteen bytes is
two 64-bit numbers, which are looked up in a table of known words, all words of a chunk at a time. Only what the table
does not hold yet becomes a string: new words, long ones, and whitespace that is more than a space between two words.
What it cannot see is left to the plain way: whitespace that is not ASCII, and the character 0, which would be taken for
the end of a word. Where there are functions in C (`words_in_c`), they go through large chunks, with the same table.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import final

import numpy as np
from numpy.typing import NDArray

from lmlab.text import words_in_c
from lmlab.text.words_in_c import EMPTY, PACKED, SLOT

Ids = NDArray[np.int32]
Keys = NDArray[np.uint64]
Places = NDArray[np.int64]

WORTH_IT = 2000  # characters of a chunk from which the fast way is the faster one
MOST_GAPS = 1 << 12  # kinds of whitespace between words that are remembered

# A lone space before a word is passed over here; `split` sees to the one that may open a document.
_TOKEN = re.compile(r"(?: (?=\S))?(\S+| ?\n(?: (?=\S))?|[^\S\n]+)")
_OPENING_SPACE = re.compile(r" (?=\S)")
_WIDE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[[*range(0x09, 0x0E), *range(0x1C, 0x21)]] = True
_SPACE_BYTES = bytes(np.flatnonzero(_IS_SPACE).tolist())
_SPACES = _IS_SPACE.tobytes()  # for `translate`, which is faster than an array of indices
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)  # keeps n of eight bytes
_MIX_LOW, _MIX_HIGH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # odd numbers of no pattern


def split(chunk: str, *, after_word: bool = False) -> list[str]:
    """The tokens of a chunk (see `chunks`) as strings; implied spaces are left out.

    A single space before a word is implied if another word comes before it; next to a line break it belongs to the
    break. So it is a token of its own only where it opens a text, that is, unless the chunk comes right after a word.
    """
    tokens: list[str] = _TOKEN.findall(chunk)
    return [" ", *tokens] if not after_word and _OPENING_SPACE.match(chunk) else tokens


def is_simple(text: str) -> bool:
    """Whether all whitespace of a text is ASCII, and no character of it is 0."""
    return "\0" not in text and (text.isascii() or not any(space in text for space in _WIDE_SPACES))


def word_bounds(text: bytes) -> tuple[Places, Places]:
    """Where the words of a simple text begin and end, in bytes."""
    is_space = np.frombuffer(b"\x01" + text.translate(_SPACES) + b"\x01", dtype=bool)
    places = np.flatnonzero(is_space[1:] != is_space[:-1])
    return places[::2], places[1::2]


_ONE_AT_A_TIME = threading.Lock()  # tables grow while they are asked; one lock for all, so that tables can be copied


@final
class WordTable:
    """Tokens by number, from 0 up, as they are met; it grows by what it is shown."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        """tokens: the first ones."""
        self.strings: list[str] = []
        self._number: dict[str, int] = {}
        self._gaps: dict[bytes, list[int]] = {}  # the tokens of whitespace between two words
        self._bits = 10
        self._clear()
        self._settled = True  # whether all that was begun was finished: Ctrl-C comes at any moment
        self._meet(list(tokens))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, and nothing that another call left half done."""
        with _ONE_AT_A_TIME:
            if not self._settled:
                self._settle()
            self._settled = False
            yield
            self._settled = True

    def _settle(self) -> None:
        """Drop what has only half a number, which nobody was told, and put the others into a table made anew."""
        del self.strings[len(self._number) :]
        self._number = {string: number for number, string in enumerate(self.strings)}
        self._clear()
        self._hold(0)

    def __getstate__(self) -> dict[str, object]:
        """For who copies or pickles it while another thread may make it grow."""
        with self._alone():
            held = {"strings": list(self.strings), "_number": dict(self._number), "_gaps": dict(self._gaps)}
            return {**self.__dict__, **held, "_table": self._table.copy(), "_settled": True}

    def number(self, token: str) -> int:
        """Of one token."""
        with self._alone():
            return int(self._meet([token])[0])

    def numbers(self, chunk: str, *, after_word: bool = False) -> Ids:
        """`split`, as numbers."""
        with self._alone():
            return self._numbers_of(chunk, after_word)

    def lines_of_words(self, text: str) -> tuple[Ids, Places] | None:
        """The words of all lines and how many each has, if lines are nothing but words with single spaces between them."""
        if not is_simple(text):
            return None
        codes = text.encode()
        ends = np.flatnonzero(np.frombuffer(codes + b" ", dtype=np.uint8) <= ord(" "))
        starts = np.append(0, ends[:-1] + 1)
        between = np.frombuffer(codes, dtype=np.uint8)[ends[:-1]]
        breaks = np.flatnonzero(between == ord("\n"))
        if (starts == ends).any() or len(breaks) + np.count_nonzero(between == ord(" ")) < len(between):
            return None
        with self._alone():
            words = self._words(codes, starts, ends)
        return words, np.diff(breaks, prepend=-1, append=len(between))

    def _numbers_of(self, chunk: str, after_word: bool) -> Ids:
        if len(chunk) < WORTH_IT or not is_simple(chunk):
            return self._meet(split(chunk, after_word=after_word))
        text = chunk.encode()
        first, last = len(text) - len(text.lstrip(_SPACE_BYTES)), len(text.rstrip(_SPACE_BYTES))
        if last <= first:
            return self._meet(split(chunk, after_word=after_word))
        head, tail = text[:first].decode(), text[last:].decode()
        parts = [self._meet(split(f"{head}a", after_word=after_word)[:-1])] if head else []
        parts += self._words_in_c(text, first, last) if words_in_c.can_read(text) else [self._between_spaces(text)]
        if tail:
            parts.append(self._meet(split(f"a{tail}")[1:]))
        return np.concatenate(parts)

    def _words_in_c(self, text: bytes, first: int, last: int) -> list[Ids]:
        """As `_between_spaces`; new words may get other numbers than there."""
        text, parts = words_in_c.padded(text), []
        while first < last:
            if 2 * (self._held + 1) > 1 << self._bits:
                self._make_room(1)
            new = len(self.strings)
            gaps = [self._gaps.get(gap, [EMPTY])[0] for gap in words_in_c.KNOWN_GAPS]
            read = words_in_c.read(text, first, last, self._table, (1 << self._bits) // 2 - self._held, new, gaps)
            is_lacking = read.numbers[read.misses[:, 0]] == EMPTY
            words = [text[a:b].decode() for _, a, b in read.misses[~is_lacking].tolist()]
            self.strings += words
            self._number.update(zip(words, range(new, len(self.strings)), strict=True))
            self._held += len(words)
            parts.append(self._filled_in(text, read.numbers, read.misses[is_lacking]))
            first = read.end
        return parts

    def _filled_in(self, text: bytes, numbers: Ids, misses: Places) -> Ids:
        """The numbers with those that are lacking: of long words, and of whitespace, which may be several tokens."""
        if not len(misses):
            return numbers
        missed = [text[start:end] for _, start, end in misses.tolist()]
        words = iter(self._meet([one.decode() for one in missed if one[0] not in _SPACE_BYTES]).tolist())
        tokens = [self._gap(one) if one[0] in _SPACE_BYTES else [next(words)] for one in missed]
        sizes = np.ones(len(numbers), dtype=np.int64)
        sizes[misses[:, 0]] = [len(found) for found in tokens]
        filled = np.repeat(numbers, sizes)
        filled[filled == EMPTY] = [number for found in tokens for number in found]
        return filled

    def _between_spaces(self, text: bytes) -> Ids:
        """The tokens from the first word to the last."""
        starts, ends = word_bounds(text)
        return self._between(text, starts, ends, self._words(text, starts, ends))

    def _meet(self, tokens: list[str]) -> Ids:
        """The numbers of these tokens; new ones get the next."""
        before = len(self.strings)
        found = np.fromiter((self._number.setdefault(t, len(self._number)) for t in tokens), np.int32, len(tokens))
        if len(self._number) > before:
            new = dict(zip(found.tolist(), tokens, strict=True))
            self.strings += [new[number] for number in range(before, len(self._number))]
            self._hold(before)
        return found

    def _between(self, text: bytes, starts: Places, ends: Places, words: Ids) -> Ids:
        """The words with the tokens of the whitespace between them, wherever that is more than one space."""
        spaces = np.frombuffer(text, dtype=np.uint8)[ends[:-1]] == ord(" ")
        gaps = np.flatnonzero(~(spaces & (starts[1:] - ends[:-1] == 1)))
        if not len(gaps):
            return words
        tokens = [self._gap(text[a:b]) for a, b in zip(ends[gaps].tolist(), starts[gaps + 1].tolist(), strict=True)]
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        flat = np.fromiter((number for numbers in tokens for number in numbers), np.int32, int(sizes.sum()))
        return np.insert(words, np.repeat(gaps + 1, sizes), flat)

    def _gap(self, gap: bytes) -> list[int]:
        found = self._gaps.get(gap)
        if found is None:
            found = self._meet(split(f"a{gap.decode()}a")[1:-1]).tolist()
            if len(self._gaps) < MOST_GAPS:
                self._gaps[gap] = found
        return found

    def _words(self, text: bytes, starts: Places, ends: Places) -> Ids:
        """The numbers of the words that stand there."""
        low, high, is_packed = _packed(text, starts, ends)
        numbers = self._find(low, high)
        numbers[~is_packed] = EMPTY
        others = np.flatnonzero(numbers == EMPTY)
        bounds = zip(starts[others].tolist(), ends[others].tolist(), strict=True)
        numbers[others] = self._meet([text[a:b].decode() for a, b in bounds])
        return numbers

    def _find(self, low: Keys, high: Keys) -> Ids:
        """The numbers of packed words; EMPTY where the table has none. A place that is taken sends one on to the next."""
        slots = _slots(low, high, self._bits)
        numbers = self._numbers[slots]
        wrong = np.flatnonzero(((self._low[slots] != low) | (self._high[slots] != high)) & (numbers != EMPTY))
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & ((1 << self._bits) - 1)
            here, at = slots[wrong], numbers
            at[wrong] = self._numbers[here]
            differ = (self._low[here] != low[wrong]) | (self._high[here] != high[wrong])
            wrong = wrong[differ & (at[wrong] != EMPTY)]
        return numbers

    def _hold(self, first: int) -> None:
        """Put the words among the tokens from this number on into the table, if they can be packed."""
        new = [(number, self.strings[number].encode()) for number in range(first, len(self.strings))]
        new = [
            (n, word) for n, word in new if word and len(word) <= PACKED and not _IS_SPACE[word[0]] and 0 not in word
        ]
        if 2 * (self._held + len(new)) > 1 << self._bits:
            self._make_room(len(new))
        if not new:
            return
        ends = np.cumsum([len(word) for _, word in new])
        starts = ends - [len(word) for _, word in new]
        low, high, _ = _packed(b"".join(word for _, word in new), starts, ends)
        self._place(low, high, np.array([number for number, _ in new], dtype=np.int32))

    def _make_room(self, words: int) -> None:
        """A larger table with the same words."""
        taken = self._numbers != EMPTY
        held = self._low[taken], self._high[taken], self._numbers[taken]
        while 4 * (self._held + words) > 1 << self._bits:
            self._bits += 1
        self._clear()
        self._place(*held)

    def _clear(self) -> None:
        self._table, self._held = np.zeros(1 << self._bits, dtype=SLOT), 0
        self._numbers[:] = EMPTY

    # Asked for anew each time: who copies or pickles a table must not get three arrays that have nothing to do with it.
    @property
    def _low(self) -> Keys:
        return self._table["low"]

    @property
    def _high(self) -> Keys:
        return self._table["high"]

    @property
    def _numbers(self) -> Ids:
        return self._table["number"]

    def _place(self, low: Keys, high: Keys, numbers: Ids) -> None:
        """Each word takes the first free place from its own on; of several that want one, the last gets it."""
        self._held += len(numbers)
        slots, left = _slots(low, high, self._bits), np.arange(len(numbers))
        while len(left):
            free = self._numbers[slots[left]] == EMPTY
            wants = left[free]
            self._numbers[slots[wants]] = numbers[wants]
            gets = wants[self._numbers[slots[wants]] == numbers[wants]]
            self._low[slots[gets]], self._high[slots[gets]] = low[gets], high[gets]
            left = left[self._numbers[slots[left]] != numbers[left]]
            slots[left] = (slots[left] + 1) & ((1 << self._bits) - 1)


def _packed(text: bytes, starts: Places, ends: Places) -> tuple[Keys, Keys, NDArray[np.bool_]]:
    """Words as their first eight bytes and the next eight, and which of them are no longer than that."""
    padded = text + bytes(2 * PACKED - len(text) % 8)
    eights = np.frombuffer(padded, dtype="<u8")
    sizes = ends - starts
    low = _eight_from(eights, starts) & _FIRST_BYTES[np.minimum(sizes, 8)]
    high = np.zeros_like(low)
    longer = np.flatnonzero(sizes > 8)
    high[longer] = _eight_from(eights, starts[longer] + 8) & _FIRST_BYTES[np.minimum(sizes[longer] - 8, 8)]
    return low, high, sizes <= PACKED


def _eight_from(eights: Keys, starts: Places) -> Keys:
    """The eight bytes from each of these on, out of the two whole eights they lie in: faster than reading across."""
    at = starts >> 3
    shift = ((starts & 7) << 3).astype(np.uint64)
    return (eights[at] >> shift) | (eights[at + 1] << np.uint64(1) << (np.uint64(63) - shift))


def _slots(low: Keys, high: Keys, bits: int) -> Places:
    """Where to look for packed words in a table of 2^bits places."""
    return (((low ^ (high * _MIX_HIGH)) * _MIX_LOW) >> np.uint64(64 - bits)).astype(np.int64)
