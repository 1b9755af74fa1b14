"""The mistakes of a classifier as a page: each text, what its words do to the decision, and the words that tipped it."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.tasks.classification.misclassified import SHOWN, Contribution, Explanation, PairContribution
from lmlab_derive.shared.html import Row, card, document, escape, folded, listed, table


def mistakes_page(data: str, found: Sequence[Explanation], ordered: bool = False) -> str:
    """The whole page. ordered: of a model to which the order of words can matter."""
    has_pairs = any(one.pairs is not None for one in found)
    average = " An average has no order: only which words there are, and how often, can matter."
    pairs = (
        " A word that is removed takes its pairs with it, and its neighbours become a pair. The contribution of a pair is what"
        " the model adds because its two words stand together."
    )
    how = (
        f"<p>A contribution is what removing every occurrence of the {'token' if ordered and not has_pairs else 'word'}"
        " changes in the model's log-odds (in nats) for the label it chose, against the right one."
        f"{pairs if has_pairs else '' if ordered else average}</p>"
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
    pairs = one.pairs or ()
    tables += _pairs(f"Pairs for {one.predicted}", [pair for pair in pairs if pair.nats > 0][:SHOWN])
    tables += _pairs(f"Pairs against {one.predicted}", [pair for pair in reversed(pairs) if pair.nats < 0][:SHOWN])
    return card(
        f"Example {one.example}", verdict + sentences + tables + folded("The text", f"<p>{escape(one.text)}</p>")
    )


def _words(title: str, words: Sequence[Contribution]) -> str:
    rows = [Row([escape(c.word), str(c.times), f"{c.nats:+.3f}"]) for c in words]
    return table([escape(title), "times", "nats"], rows, label=title) if rows else ""


def _pairs(title: str, pairs: Sequence[PairContribution]) -> str:
    rows = [Row([escape(pair.words), f"{pair.nats:+.3f}"]) for pair in pairs]
    return table([escape(title), "nats"], rows, label=title) if rows else ""
