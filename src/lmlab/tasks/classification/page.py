"""The mistakes of a classifier as a page: each text, what its words do to the decision, and the words that tipped it."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.tasks.classification.misclassified import SHOWN, Contribution, Explanation
from lmlab_derive.shared.html import Row, card, document, escape, folded, listed, table


def mistakes_page(data: str, found: Sequence[Explanation], ordered: bool = False) -> str:
    """The whole page. ordered: of a model to which the order of words can matter."""
    average = " An average has no order: only which words there are, and how often, can matter."
    how = (
        f"<p>A contribution is what removing every occurrence of the {'token' if ordered else 'word'} changes in the model's"
        f" log-odds for the label it chose, against the right one.{'' if ordered else average}</p>"
    )
    body = "".join(_one(explanation) for explanation in found) or "<p>There are no mistakes to show.</p>"
    return document(f"Mistakes on {data}", f"<h1>Mistakes on {escape(data)}</h1>\n{how}\n{body}")


def _one(one: Explanation) -> str:
    speaks_for = [c for c in one.contributions if c.nats > 0][:SHOWN]
    against = [c for c in reversed(one.contributions) if c.nats < 0][:SHOWN]
    verdict = (
        f"<p>It is <strong>{escape(one.right)}</strong> (p = {one.p_right:.3f}), taken for"
        f" <strong>{escape(one.predicted)}</strong> (p = {one.p_predicted:.3f}).</p>"
    )
    sentences = listed(one.sentences)
    tables = _words(f"For {one.predicted}", speaks_for) + _words(f"Against {one.predicted}", against)
    return card(
        f"Example {one.example}", verdict + sentences + tables + folded("The text", f"<p>{escape(one.text)}</p>")
    )


def _words(title: str, words: Sequence[Contribution]) -> str:
    rows = [Row([escape(c.word), str(c.times), f"{c.nats:+.3f}"]) for c in words]
    return table([escape(title), "times", "nats"], rows, label=title) if rows else ""
