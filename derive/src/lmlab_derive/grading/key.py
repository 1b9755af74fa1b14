"""The key of a class: its setting, its questions with their names and points, and what each of them asks.

    question 1a (3 points)
    claim dJ/dW == x.T @ (p - y)

Every claim or derivation below such a line is a part of that question and has an equal share of its points; without such
lines every claim is a question of its own, worth one point. A part asks for its left side (the middle of 0 <= p <= 1, which
makes two parts), and the key's own right side is one right answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lmlab_derive.grading.roles import of_whole_arrays
from lmlab_derive.limits import Refusal
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.sheets.claims import check_claim
from lmlab_derive.sheets.headings import Heading, headings, same_name, section
from lmlab_derive.text import to_text
from lmlab_derive.tree import Claim, Node, NotUnderstood, constant_value

FLIPPED = {"==": "==", "<=": ">=", ">=": "<=", "<": ">", ">": "<"}


@dataclass(frozen=True)
class Part:
    """What is asked: `target sign value`, where the value is one right answer. The sign is ==, <=, <, >= or >."""

    target: Node
    sign: str
    value: Node
    scope: Scope  # in which answers are read: the setting of the key, and what is given for this part alone
    between: tuple[Node, ...] = ()  # the steps of the key's derivation before its last
    reworded: Node | None = None  # the key's own target, where an answer has it in other words
    text: str = ""  # the target as the key has it written

    @property
    def label(self) -> str:
        """What is asked for, as text."""
        return self.text or to_text(self.target)


@dataclass(frozen=True)
class Question:
    """A question of the key; every part has an equal share of the points."""

    name: str
    points: Fraction
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Key:
    """The questions, in their order."""

    questions: tuple[Question, ...]

    @property
    def points(self) -> Fraction:
        """How many there are to get."""
        return sum((question.points for question in self.questions), Fraction(0))


def read_key(text: str, seed: int = 0) -> Key:
    """Read a key. One that is not understood, asks nothing or does not hold itself is refused."""
    named, rest = headings(text)
    sheet = parse(rest)
    claims: list[ScopedClaim] = []
    for entry in sheet.entries:
        if isinstance(entry, NotUnderstood):
            raise Refusal(f"the key is not understood, line {entry.line}: {entry.reason}", code="key-not-understood")
        report = check_claim(entry, seed, hints=False)
        if not report.holds:
            raise Refusal(
                f"the key does not hold, line {report.line}: {report.verdict}, {report.reason}",
                code="key-does-not-hold",
            )
        claims.append(entry)
    if not claims:
        raise Refusal("the key asks nothing; each claim or derive in it is a question", code="key-asks-nothing")
    questions = []
    for heading, entries in _grouped(named, claims):
        parts = tuple(part for entry in entries for part in _parts(entry.claim, _widened(entry.scope, sheet.scope)))
        points = Fraction(1) if heading.points is None else heading.points
        if not points:
            raise Refusal(
                f"the key, line {heading.line}: a question is worth more than 0 points", code="question-without-points"
            )
        questions.append(Question(heading.name, points, parts))
    names = [same_name(question.name) for question in questions]
    for name in names:
        if names.count(name) > 1:
            raise Refusal(
                f"two questions of the key are called {name!r}; give each a name of its own", code="question-twice"
            )
    return Key(tuple(questions))


def _grouped(
    named: Sequence[Heading], claims: Sequence[ScopedClaim]
) -> Iterator[tuple[Heading, Sequence[ScopedClaim]]]:
    """The claims of every question; one that stands under no name is a question of its own."""
    loose = [entry for entry in claims if section(named, entry.claim.line) is None]
    for number, entry in enumerate(loose, start=1):
        yield Heading(entry.claim.line, f"Q{number}"), [entry]
    for heading in named:
        entries = [entry for entry in claims if section(named, entry.claim.line) is heading]
        if not entries:
            raise Refusal(
                f"the key, line {heading.line}: question {heading.name} asks nothing; a claim belongs below it",
                code="question-asks-nothing",
            )
        yield heading, entries


def _parts(claim: Claim, scope: Scope) -> list[Part]:
    """What a claim of the key asks for; where it speaks of every entry of an array, that array."""
    at = 1 if len(claim.steps) == 3 and "==" not in [step.relation for step in claim.steps[1:]] else 0
    steps = of_whole_arrays(claim.steps, at, scope) or claim.steps
    values, signs = [step.value for step in steps], [step.relation for step in steps[1:]]
    texts = [new.text if new.value is old.value else "" for new, old in zip(steps, claim.steps, strict=True)]
    if len(values) == 3 and "==" not in signs:
        below, middle, above = values
        sides = ((FLIPPED[signs[0]], below), (signs[1], above))
        return [Part(middle, sign, value, scope, text=texts[1]) for sign, value in sides]
    sign = composed(signs)
    if sign is None:
        raise Refusal(
            f"the key, line {claim.line}: the chain goes up and down; make two claims of it",
            code="key-chain-up-and-down",
        )
    if constant_value(values[0]) is not None:
        return [Part(values[-1], FLIPPED[sign], values[0], scope, text=texts[-1])]
    between = tuple(values[1:-1]) if sign == "==" else ()
    return [Part(values[0], sign, values[-1], scope, between, text=texts[0])]


def composed(signs: Sequence[str]) -> str | None:
    """The sign between the ends of a chain: <= for a == b <= c. None where it goes up and down."""
    strictest = max(signs, key=lambda sign: (sign != "==", len(sign) == 1))
    direction = {"==", strictest[0], f"{strictest[0]}="}
    return strictest if set(signs) <= direction else None


def _widened(scope: Scope, final: Scope) -> Scope:
    """Where answers are read: one may use what the key defines further down, if no name means two things."""
    if any(final.definitions.get(name, d) != d for name, d in scope.definitions.items()):
        return scope
    return replace(scope, definitions=final.definitions | scope.definitions, sizes=scope.sizes | final.sizes)
