"""The findings of a comparison as frozen records. The report and the terminal output are made from these records alone."""

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
    documents: int = 0  # 0: unknown


@dataclass(frozen=True, kw_only=True)
class Text:
    """The corpus of a comparison.

    Attributes:
        overlap: sentences about the overlap of the parts, by `lmlab.text.shared_substrings`.
        shared: the share of each held-out part that also occurs in the training part.
    """

    name: str
    documents: int
    parts: dict[str, TextPart]
    entropy_bits_per_byte: float | None
    overlap: tuple[str, ...]
    shared: dict[str, float] = field(default_factory=dict)  # empty: unknown
    division: str = ""  # a sentence on how the text was divided; empty: unknown


@dataclass(frozen=True, kw_only=True)
class OverlapFound:
    """The overlap of the held-out parts with the training part: as sentences, and as a share of each part."""

    sentences: tuple[str, ...]
    shared: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class BaselinesFound:
    """The results of general compressors on a text. text: the SHA-256 of the text."""

    text: str
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The bytes that all models were scored on, out of `of` bytes of the test part; see `lmlab.measure.Spread`."""

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
    """One token of the paragraph that is scored token by token.

    Names are short because the file holds thousands of tokens.
    """

    t: str  # text of the token
    b: float | None  # bits; None: probability zero
    f: tuple[tuple[str, float], ...]  # the likeliest predictions, with probabilities
    n: int | None = None  # bytes; the text does not show them for a part of a character


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Pieces of the scored text that were compressed with the model and decompressed; see `lmlab.compression.proof`."""

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
    """The bits per byte of one seed of a model; None if infinite."""

    seed: int
    bits_per_byte: float | None


@dataclass(frozen=True, kw_only=True)
class Training:
    """The training of one entry, over all seeds."""

    tokens: int
    seconds: float
    steps: int | None
    allowed_s: float | None = None  # planned training seconds per run; the smallest over seeds
    planned_tokens: float | None = None  # tokens that the model size was chosen for; None: not planned
    untold: bool = False  # first validated in the second half of its time: the curve is too short to judge
    still_falling: float | None = (
        None  # bits per byte that the second half of its time brought, if it fell steeply to the end
    )
    calibrated: float | None = None  # calibration factor of the logits (first seed)
    diverged: int = 0  # runs that diverged; their best weights before that were scored


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One validation during training."""

    seconds: float
    bits_per_byte: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model under one tokenizer. The fields from `excerpt` on are set only if the entry was scored."""

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
    excerpt_cut: tuple[bool, bool] = (False, False)  # whether it begins or ends within a line
    sample: str = ""
    proof: Proof | None = None
    result: Score | None = None
    seeds: tuple[SeedScore, ...] = ()
    training: Training | None = None
    training_flops: float | None = None
    tokens_per_second: float | None = None
    curve: tuple[CurvePoint, ...] = ()
    valid_bits_per_byte: float | None = None  # of the validation part, with the saved weights; None: unknown

    @property
    def failed_a_check(self) -> bool:
        """Whether a check of its certificate failed, so that its number is wrong or not held out."""
        return self.result is not None and any(check.passed is False for check in self.result.checks)

    @property
    def bits_per_byte(self) -> float | None:
        """Bits per byte; None if there is no result or it is infinite."""
        return None if self.result is None else self.result.bits_per_byte


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The result of a general compressor on the same bytes. detail: the training text that it read beforehand."""

    name: str
    bits_per_byte: float
    seconds: float
    detail: str


@dataclass(frozen=True, kw_only=True)
class SeedSpread:
    """Standard deviation over seeds of each trained entry's bits per byte, if there are several seeds.

    sentence: the same in words.
    """

    deviations: dict[str, float]
    seeds: int
    measured: bool
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The rank interval of an entry and its compact letter display.

    Entries that share a letter do not differ significantly.
    """

    letters: str
    ranks: tuple[int, int]

    @property
    def shown(self) -> str:
        """The ranks and letters as text, such as "2–3 bc"."""
        best, worst = self.ranks
        return f"{best} {self.letters}" if best == worst else f"{best}–{worst} {self.letters}"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The paired difference of two entries: bits per byte of `a` minus those of `b`; None if not finite.

    Attributes:
        low, high: the simultaneous interval over all pairs.
        apart: whether the difference is significant.
        throughout: whether one entry needs fewer bits than the other in each piece of this text.
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
    """The ranks of all entries and their significant differences; see `lmlab.measure.Ranking`.

    note: the population that the intervals are for, or why there are none.
    """

    about: str
    level: float
    note: str
    models: dict[str, Standing]
    pairs: tuple[Compared, ...]

    def tied_with(self, name: str) -> list[str]:
        """Return the entries that do not differ significantly from this one."""
        pairs = [pair for pair in self.pairs if name in (pair.a, pair.b) and not pair.apart]
        return [pair.b if pair.a == name else pair.a for pair in pairs]

    def between(self, a: str, b: str) -> Compared:
        """Return the comparison of two entries, in either order."""
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {a, b})


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The difference in bits per byte between one entry and the next, with the simultaneous 95% interval over all pairs.

    The difference and the interval are None if a number is infinite or the text is too short to estimate it.
    """

    better: str
    worse: str
    difference: float | None
    interval: tuple[float, float] | None
    real: bool


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage of the test text, and the bits that two models needed for it."""

    text: str
    start: int
    bits: tuple[float, float]
    cut: tuple[bool, bool] = (False, False)  # whether it begins or ends within a line


@dataclass(frozen=True, kw_only=True)
class Differences:
    """The passages where the best entry gains most on the second best, and the reverse."""

    best: str
    second: str
    for_best: tuple[Passage, ...]
    for_second: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All findings of a comparison; comparison.json holds them. entries: best first, then those without a rank."""

    format: int = FORMAT
    command: str
    budget_s: float | None  # None: every run had the budget `each`, in steps or tokens
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
    shares: dict[str, float] = field(default_factory=dict)  # relative training time by model; 1 if missing
    together: tuple[EntryMix, ...] = ()  # one mix per tokenizer
    each: str | None = None  # the budget of every run that learns, if requested
    not_mixed: tuple[str, ...] = ()  # sentences that tell why a tokenizer has no mix

    @property
    def several_seeds(self) -> bool:
        """Whether some entries are means over several seeds."""
        return any(len(entry.seeds) > 1 for entry in self.entries)

    @property
    def measured_entries(self) -> list[Entry]:
        """The entries with a result, best first."""
        return [entry for entry in self.entries if entry.result is not None]

    @property
    def trusted_entries(self) -> list[Entry]:
        """The entries that pictures and remarks are about: those with a rank, or without any the ones that failed no check."""
        ranked = [entry for entry in self.entries if entry.rank is not None]
        return ranked or [entry for entry in self.measured_entries if not entry.failed_a_check]
