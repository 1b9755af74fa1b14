"""What a comparison found: frozen records, and JSON at the edge. The page and the terminal are made from these alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lmlab.comparison.mixes import EntryMix
from lmlab.comparison.score_found import Score

FORMAT = 1

Status = Literal["waiting", "training", "trained", "measuring", "interrupted", "ranked", "unranked", "failed"]


@dataclass(frozen=True, kw_only=True)
class TextPart:
    """One part of the corpus."""

    bytes: int
    sha256: str
    documents: int = 0  # older comparisons do not say


@dataclass(frozen=True, kw_only=True)
class Text:
    """The corpus. overlap: what its parts share, in sentences of `lmlab.text.shared_substrings`; shared: how much of each."""

    name: str
    documents: int
    parts: dict[str, TextPart]
    entropy_bits_per_byte: float | None
    overlap: tuple[str, ...]
    shared: dict[str, float] = field(default_factory=dict)  # older comparisons do not say
    division: str = ""  # how the parts were divided, in a sentence; older comparisons do not say


@dataclass(frozen=True, kw_only=True)
class OverlapFound:
    """What the held-out parts share with the training part: in sentences, and how much of each."""

    sentences: tuple[str, ...]
    shared: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class BaselinesFound:
    """What general compressors made of a text, which is named by its hash."""

    text: str
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The bytes that all models were measured on, `of` so many in the test part; see `lmlab.measure.Spread`."""

    bytes: int
    of: int
    sha256: str
    stretches: int = 0
    documents: int = 0
    of_documents: int = 0
    read_bytes: int = 0
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Token:
    """One token of the paragraph that is read closely. Names are short because the file holds thousands of them."""

    t: str  # its text
    b: float | None  # its bits; None where the model holds it impossible
    f: tuple[tuple[str, float], ...]  # what the model thought likeliest, with probabilities
    n: int | None = None  # its bytes, which its text does not tell where it is a part of a character


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Pieces of the measured text, coded with the model and read again; see `lmlab.compression.proof`."""

    original_bytes: int
    tokens: int
    claimed_bits: float | None  # None: infinite
    compressed_bytes: int
    identical: bool
    holds: bool
    pieces: int = 1
    excess_bits: float | None = None
    allowed_bits: float = 0.0
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class SeedScore:
    """The number of one run of a model; None where it is infinite."""

    seed: int
    bits_per_byte: float | None


@dataclass(frozen=True, kw_only=True)
class Training:
    """What learning took, over all seeds."""

    tokens: int
    seconds: float
    steps: int | None
    allowed_s: float | None = None  # that each run of a model that learns was to have; the shortest
    planned_tokens: float | None = None  # what the size was chosen for; None: nothing was planned
    untold: bool = False  # it was first validated in the second half of its time: whether it needed more cannot be told
    wanted: str | None = None  # the least it would have liked, where its curve was still falling steeply at the end
    calibrated: float | None = None  # what its logits were multiplied by at the end (that of its first seed)
    diverged: int = 0  # runs of it whose loss did: they stand here with the best weights before that


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Validation while training."""

    seconds: float
    bits_per_byte: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model under one tokenizer. What comes after `reused` is there only if it was measured."""

    name: str
    model: str
    tokenizer: str
    status: Status
    error: str
    rank: int | None
    seconds: float
    peak_memory_bytes: int
    reused: bool
    message: str = ""
    excerpt: tuple[Token, ...] = ()
    excerpt_cut: tuple[bool, bool] = (False, False)  # whether its line began before it, and goes on after it
    sample: str = ""
    proof: Proof | None = None
    result: Score | None = None
    seeds: tuple[SeedScore, ...] = ()
    training: Training | None = None
    training_flops: float | None = None
    tokens_per_second: float | None = None
    curve: tuple[CurvePoint, ...] = ()

    @property
    def bits_per_byte(self) -> float | None:
        """Its number; None where it has none, or an infinite one."""
        return None if self.result is None else self.result.bits_per_byte


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a general compressor made of the same bytes. detail: what it was shown beforehand."""

    name: str
    bits_per_byte: float
    seconds: float
    detail: str


@dataclass(frozen=True, kw_only=True)
class SeedSpread:
    """Standard deviation of each learned entry over seeds, in bits per byte, if there are several; also in words."""

    deviations: dict[str, float]
    seeds: int
    measured: bool
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where an entry stands: the best and the worst rank it may have. Two share a letter if they cannot be told apart."""

    letters: str
    ranks: tuple[int, int]

    @property
    def shown(self) -> str:
        """Such as "2–3 bc"."""
        best, worst = self.ranks
        return f"{best} {self.letters}" if best == worst else f"{best}–{worst} {self.letters}"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two entries: bits per byte of `a` minus those of `b`, bounded for all pairs together; None where not finite.

    throughout: whether one of them needs fewer bits in each piece of this very text.
    """

    a: str
    b: str
    difference: float | None
    low: float | None
    high: float | None
    apart: bool
    throughout: bool = False


@dataclass(frozen=True, kw_only=True)
class RankingFound:
    """Who can be told apart from whom; see `lmlab.measure.Ranking`. note: what the intervals are for."""

    about: str
    level: float
    note: str
    models: dict[str, Standing]
    pairs: tuple[Compared, ...]

    def tied_with(self, name: str) -> list[str]:
        """The entries that cannot be told apart from this one."""
        pairs = [pair for pair in self.pairs if name in (pair.a, pair.b) and not pair.apart]
        return [pair.b if pair.a == name else pair.a for pair in pairs]

    def between(self, a: str, b: str) -> Compared:
        """The pair of these two."""
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {a, b})


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How many bits per byte one entry is better than the next, with the 95% interval for all pairs together.

    None where a number is infinite, or where the text is too short to tell.
    """

    better: str
    worse: str
    difference: float | None
    interval: tuple[float, float] | None
    real: bool


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Some bytes of the test text, and the bits that two models needed for them."""

    text: str
    start: int
    bits: tuple[float, float]
    cut: tuple[bool, bool] = (False, False)  # whether its line began before it, and goes on after it


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Where the best gains most on the second best, and the reverse."""

    best: str
    second: str
    for_best: tuple[Passage, ...]
    for_second: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything; entries best first, then those without a rank. comparison.json holds it."""

    format: int = FORMAT
    command: str
    budget_s: float | None  # None: every model had a budget of its own, in steps or tokens, which is `each`
    seed: int
    versions: dict[str, str]
    corpus: Text
    measured: Measured
    entries: tuple[Entry, ...]
    yardsticks: tuple[Baseline, ...]
    luck: SeedSpread
    pairs: tuple[Pair, ...]
    differences: Differences | None
    seconds: float
    ranking: RankingFound | None = None
    shares: dict[str, float] = field(default_factory=dict)  # of training, by model; 1 where nothing is said
    together: tuple[EntryMix, ...] = ()  # one a tokenizer
    each: str | None = None  # the budget of every model that learns, where that was asked for
    not_mixed: tuple[str, ...] = ()  # why there is none of a tokenizer, in sentences

    @property
    def several_seeds(self) -> bool:
        """Whether some entries are means over several runs."""
        return any(len(entry.seeds) > 1 for entry in self.entries)

    @property
    def measured_entries(self) -> list[Entry]:
        """Those with a result, best first."""
        return [entry for entry in self.entries if entry.result is not None]
