"""The `words` coding: whitespace words, with the line break as a token (the Penn Treebank convention), lossless.

A text is a sequence of words (runs without whitespace) and of whitespace between them. The tokens are

- every word, always the same id wherever it stands;
- every line break, together with one space just before it, and one space just after it when a word follows;
- every other run of whitespace, except that a single space between two words is implied and is no token.

In a Penn Treebank file each line reads " a b c \\n". There the line break is always the token " \\n ", the space before
the first word of the file goes without saying, and so does the missing space after the last line break: one token for
each word and one for each line. That this holds for a tokenizer (`spaced`) is learned from its training text. An
unknown token spelled with nothing at all says "no space here" where one would be implied.

Words that are not in the vocabulary, and whitespace runs that are not, become the unknown symbol; their spelling
is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from lmlab.text.chunks import flagged
from lmlab.text.codings import Coding, Encoded
from lmlab.text.word_table import WORTH_IT, Ids, WordTable, split

LINES = 1 << 12  # short texts that are encoded at once: their temporaries stay in a core's cache
COUNTED_AT_ONCE = 1 << 20  # tokens
MOST_UNKNOWN = 1 << 20  # different unknown words that are remembered while encoding

UNKNOWN = "<unknown word>"  # holds a space, so no word of any text can equal it

# The characters for which str.isspace() is true, written out because regular-expression libraries disagree on \s.
SPACE_IN_LINE = r"\t\x0b-\r\x1c- \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
SPACE = r"\n" + SPACE_IN_LINE


def count(documents: Iterable[Iterable[str]]) -> tuple[Counter[str], bool]:
    """How often each token string occurs in documents given as chunks, and whether their lines are `spaced`.

    The edges of a document are counted last, because what goes without saying there depends on how the lines look.
    """
    table = WordTable()
    inside = _Tally()
    openings: Counter[str] = Counter()
    closings: Counter[str] = Counter()
    for document in documents:
        before = " "
        for chunk, first, last in flagged(document):
            tokens = table.numbers(chunk, after_word=not before.isspace())
            before = chunk[-1]
            if first:
                openings[table.strings[tokens[0]]] += 1
                tokens = tokens[1:]
            if last and len(tokens):
                closings[table.strings[tokens[-1]]] += 1
                tokens = tokens[:-1]
            inside.add(tokens)
    counts = Counter(dict(zip(table.strings, inside.counts(len(table.strings)).tolist(), strict=True)))
    spaced = counts["\n "] + counts[" \n "] > counts["\n"] + counts[" \n"]
    if spaced:
        del openings[" "]
        closings = Counter({_final(token): n for token, n in closings.items()})
    counts.update(openings)
    counts.update(closings)
    return +counts, spaced


class _Tally:
    """How often each number was met; looked at a million at a time, since there may be as many kinds."""

    def __init__(self) -> None:
        self._counts, self._waiting, self._size = np.zeros(0, dtype=np.int64), [np.zeros(0, dtype=np.int32)], 0

    def add(self, numbers: Ids) -> None:
        self._waiting.append(numbers)
        self._size += len(numbers)
        if self._size >= COUNTED_AT_ONCE:
            self._count()

    def counts(self, kinds: int) -> np.ndarray:
        """Of the numbers below `kinds`."""
        self._count()
        return np.pad(self._counts, (0, kinds - len(self._counts)))

    def _count(self) -> None:
        found = np.bincount(np.concatenate(self._waiting), minlength=len(self._counts))
        found[: len(self._counts)] += self._counts
        self._counts, self._waiting, self._size = found, [np.zeros(0, dtype=np.int32)], 0


def _final(token: str) -> str:
    """The last token of a document with spaced lines: a line break as if one more line followed."""
    return token + " " if token.endswith("\n") else token


class _Ids(dict[str, int]):
    """The id of every word, by word; as many look-ups as there are words in a text go through here."""

    def __missing__(self, word: str) -> int:
        return len(self)  # the unknown symbol comes after all others


class WordCoding(Coding):
    """Words and line breaks by id, most frequent first; the unknown symbol is the last id."""

    def __init__(self, words: Sequence[str], *, spaced: bool) -> None:
        self.vocab_size = len(words) + 1
        self.unknown_id: int = len(words)
        self.words = list(words)
        self.spaced = spaced
        self._id_of = _Ids(zip(words, range(len(words)), strict=True))
        self._strings = np.array([*words, UNKNOWN], dtype=object)
        self._lengths = np.array([len(w.encode()) for w in self._strings], dtype=np.int64)
        self._is_word = np.array([_is_word(w) for w in self._strings])

    @cached_property
    def _table(self) -> WordTable:
        """Numbers the words by their ids, and the unknown ones that were met beyond them."""
        return WordTable(self.words)

    @property
    def _kept_table(self) -> WordTable:
        """The table, begun afresh where it holds too many unknown words."""
        if len(self._table.strings) > self.vocab_size + MOST_UNKNOWN:
            del self._table
        return self._table

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Divide into tokens, and look them up."""
        before = " "
        for chunk, first, last in flagged(chunks):
            numbers = self._kept_table.numbers(chunk, after_word=not before.isspace())
            if self.spaced and (first or last):
                numbers = self._leave_unsaid(numbers, first, last)
            if not (before.isspace() or chunk[0].isspace()):
                # a word longer than a chunk goes on without a space
                numbers = np.insert(numbers, 0, self._table.number(""))
            before = chunk[-1]
            yield self._encoded(numbers)

    def _encoded(self, numbers: Ids) -> Encoded:
        unknown = numbers[numbers >= self.unknown_id].tolist()
        ids = np.minimum(numbers, self.unknown_id).astype(self.dtype)
        return Encoded(ids, [self._table.strings[number] for number in unknown])

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Thousands at a time where all are words with single spaces between them, as most are; else one by one."""
        found = [self._lines(texts[first : first + LINES]) for first in range(0, max(1, len(texts)), LINES)]
        encoded = Encoded(np.concatenate([e.ids for e, _ in found]), [s for e, _ in found for s in e.spellings])
        return encoded, np.concatenate([lengths for _, lengths in found])

    def encode_documents(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """As `encode` does, which takes a text whose lines begin with a space for a whole one."""
        return super().encode_each(texts) if self.spaced else self.encode_each(texts)

    def _lines(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        together = "\n".join(texts)
        if len(together) >= WORTH_IT:
            found = self._kept_table.lines_of_words(together)
            if found is not None and len(found[1]) == len(texts):
                return self._encoded(found[0]), found[1]
        of_text = [self._line(split(text)) for text in texts]
        tokens = [token for line in of_text for token in line]
        return self._looked_up(tokens), np.fromiter(map(len, of_text), dtype=np.int64, count=len(texts))

    def _line(self, tokens: list[str]) -> list[str]:
        """The tokens of one line; a spaced one begins with a space that goes without saying."""
        return tokens[1:] if self.spaced and tokens[:1] == [" "] and len(tokens) > 1 else tokens

    def _looked_up(self, tokens: Sequence[str]) -> Encoded:
        ids = np.fromiter(map(self._id_of.__getitem__, tokens), dtype=self.dtype, count=len(tokens))
        return Encoded(ids, [tokens[int(i)] for i in np.flatnonzero(ids == self.unknown_id)])

    def _leave_unsaid(self, numbers: Ids, first: bool, last: bool) -> Ids:
        """Leave out the space that opens the first line; take the last line break for one that a line follows."""
        table = self._table
        opening = table.strings[numbers[0]]
        if first and _is_word(opening):
            numbers = np.insert(numbers, 0, table.number(""))
        elif first and opening == " " and len(numbers) > 1:
            numbers = numbers[1:]
        if last:
            numbers = np.append(numbers[:-1], np.int32(table.number(_final(table.strings[numbers[-1]]))))
        return numbers

    def _laid_out(self, ids: np.ndarray, spellings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(positions of unknown tokens that are spelled, which tokens have an implied space before them)."""
        unknown = np.flatnonzero(ids == self.unknown_id)[: len(spellings)]
        is_word = self._is_word[ids]
        is_word[unknown] = [_is_word(s) for s in spellings[: len(unknown)]]
        implied = is_word.copy()
        implied[1:] &= is_word[:-1]
        if not self.spaced:
            implied[:1] = False
        return unknown, implied

    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """Join the tokens, with the implied spaces. An unknown token without a spelling reads as `UNKNOWN`."""
        if len(ids) == 0:
            return ""
        unknown, implied = self._laid_out(ids, spellings)
        strings = self._strings[ids]
        strings[unknown] = spellings[: len(unknown)]
        text = "".join([" " + s if space else s for s, space in zip(strings, implied, strict=True)])
        return text[:-1] if self._ends_unsaid(strings[-1]) else text

    def token_bytes(self, ids: np.ndarray, spellings: Sequence[str]) -> np.ndarray:
        """Bytes of each token; an implied space counts with the word after it."""
        if len(ids) == 0:
            return np.zeros(0, dtype=np.int64)
        unknown, implied = self._laid_out(ids, spellings)
        lengths = self._lengths[ids]
        lengths[unknown] = [len(s.encode()) for s in spellings[: len(unknown)]]
        final = spellings[len(unknown) - 1] if len(unknown) and unknown[-1] == len(ids) - 1 else self._strings[ids[-1]]
        lengths += implied
        lengths[-1] -= self._ends_unsaid(final)
        return lengths

    def _ends_unsaid(self, final: str) -> bool:
        return self.spaced and final.endswith("\n ")

    def piece(self, id: int) -> str:
        """The word, the line break or the whitespace run."""
        return str(self._strings[id])


def _is_word(token: str) -> bool:
    return token != "" and not token[0].isspace()


def word_backend(words: Sequence[str], *, spaced: bool) -> Backend:
    """The library tokenizer with these words, for tokenizer.json.

    It encodes texts as `WordCoding` does, and decodes what holds no unknown word, without loss.
    """
    backend = Backend(models.WordLevel({w: id for id, w in enumerate([*words, UNKNOWN])}, unk_token=UNKNOWN))
    word = f"[^{SPACE}]"
    between_words = pre_tokenizers.Split(Regex(f"(?<={word}) (?={word})"), "removed")
    followed = rf"{word}|\z" if spaced else word
    line_break = pre_tokenizers.Split(Regex(rf"(?:(?<![{SPACE_IN_LINE}]) )?\n(?: (?={followed}))?"), "isolated")
    other_space = pre_tokenizers.Split(Regex(rf"[{SPACE}]+"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([between_words, line_break, other_space])
    space_before_words = decoders.Replace(Regex(rf"\A(?={word})"), " ")
    if spaced:
        backend.normalizer = normalizers.Sequence(
            [normalizers.Replace(Regex(rf"\A (?={word})"), ""), normalizers.Replace(Regex(r"\n\z"), "\n ")]
        )
        unsaid = [decoders.Replace(Regex(rf"(?<=[{SPACE}]) (?={word})"), ""), decoders.Replace(Regex(r"\n \z"), "\n")]
    else:
        unsaid = [decoders.Replace(Regex(rf"(?:\A|(?<=[{SPACE}])) (?={word})"), "")]
    backend.decoder = decoders.Sequence([space_before_words, decoders.Fuse(), *unsaid])
    return backend
