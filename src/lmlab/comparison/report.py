"""The page: one HTML file that needs nothing but itself, made from comparison.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmlab.comparison import figures
from lmlab.comparison.markup import HEAT_BITS, asset, coloured_name, escape, good, heat, heat_label, series_of
from lmlab.comparison.ranking_section import learning, ranking, ranking_chart
from lmlab.text.files import write_atomically


def write_report(document: dict[str, Any], path: Path) -> Path:
    """Write the page for a comparison, and its ranking as a picture beside it; returns the page's path."""
    series = series_of(document)
    picture = figures.standalone(ranking_chart(document, series), asset("page.css"))
    write_atomically(path.with_name("ranking.svg"), picture.encode())
    write_atomically(path, render(document).encode())
    return path


def render(document: dict[str, Any]) -> str:
    """The page as text."""
    series = series_of(document)
    sections = [
        _opening(document),
        ranking(document, series),
        learning(document, series),
        _reading(document, series),
        _differences(document),
        _samples(document, series),
        _certificates(document, series),
        _reproduce(document),
    ]
    title = f"Language models on {document['corpus']['name']}"
    readings = {
        str(series[e["name"]]): [[t["b"], t["f"]] for t in e.get("excerpt", [])]
        for e in document["entries"]
        if e["name"] in series
    }
    data = json.dumps(readings, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{asset('page.css')}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#ranking">Skip to the ranking</a>\n<main>\n'
        + "\n".join(section for section in sections if section)
        + '\n</main>\n<div id="tip" role="status" hidden></div>\n'
        f'<script type="application/json" id="readings">{data}</script>\n<script>{asset("page.js")}</script>\n'
        "</body>\n</html>\n"
    )


def _opening(document: dict[str, Any]) -> str:
    corpus, measured = document["corpus"], document["measured"]
    train = corpus["parts"]["train"]["bytes"]
    facts = {
        "trained on": f"{train:,} bytes, {corpus['documents']} document{'s' if corpus['documents'] != 1 else ''}",
        "measured on": f"{measured['bytes']:,} held-out bytes"
        + ("" if measured["bytes"] == measured["of"] else f", the first of {measured['of']:,}"),
        "time": f"{document['seconds']:.0f} s of a budget of {document['budget_s']:.0f} s",
        "machine": document["versions"].get("gpu", document["versions"]["processor"]),
    }
    cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    overlap = "".join(f'<p class="soft">{escape(line)}.</p>' for line in corpus["overlap"])
    return (
        f"<h1>Which model predicts {escape(corpus['name'])} best?</h1>\n"
        f'<p class="verdict">{_verdict(document)}</p>\n<dl class="facts">{cells}</dl>\n{overlap}'
    )


def _verdict(document: dict[str, Any]) -> str:
    """The answer in two sentences."""
    ranked = [e for e in good(document) if e["rank"] is not None]
    if not ranked:
        return "No model finished with a certified result."
    best = ranked[0]
    bits, interval = best["result"]["bits_per_byte"], best["result"]["interval"]
    spread = f" (95% interval {interval[0]:.3f} to {interval[1]:.3f})" if interval else ""
    first = f"<strong>{escape(best['name'])}</strong>, with {bits:.3f} bits per byte{spread}."
    tied = [
        (pair["b"] if pair["a"] == best["name"] else pair["a"])
        for pair in document["ranking"]["pairs"]
        if best["name"] in (pair["a"], pair["b"]) and not pair["apart"]
    ]
    if tied:
        return f"{first} It cannot be told apart from {escape(' and '.join(tied))} by this comparison."
    if not document["pairs"]:
        return first
    pair = document["pairs"][0]
    if pair["interval"] is None:
        return first
    low, high = pair["interval"]
    whose = "kinds of model" if document["luck"]["measured"] or not document["luck"]["sentence"] else "trained models"
    return (
        f"{first} That is {pair['difference']:.3f} less than {escape(pair['worse'])}, and these two {whose} can be told"
        f" apart: the 95% interval of their difference, all pairs taken together, is {low:.3f} to {high:.3f}."
    )


def _reading(document: dict[str, Any], series: dict[str, int]) -> str:
    scale = "".join(f'<b class="s{i}">{heat_label(i)}</b>' for i in range(len(HEAT_BITS) + 1))
    cards = []
    for e in document["entries"]:
        if not e.get("excerpt"):
            continue
        known = [t["b"] for t in e["excerpt"] if t["b"] is not None]
        size = sum(len(t["t"].encode()) for t in e["excerpt"])
        spans = "".join(f'<b class="s{heat(t["b"])}">{escape(t["t"])}</b>' for t in e["excerpt"])
        cards.append(
            f'<article class="card"><h3>{coloured_name(e, series)}'
            f"<span>{sum(known) / max(1, size):.2f} bits per byte here</span></h3>"
            f'<p class="tokens" data-of="{series[e["name"]]}" tabindex="0" role="group"'
            f' aria-label="The paragraph under {escape(e["name"])}; arrow keys walk over the tokens">{spans}</p></article>'
        )
    if not cards:
        return ""
    return (
        "<h2>The same paragraph, read by each model</h2>\n"
        "<p>Held-out text, coloured by surprise. Point at a token, or walk over it with the arrow keys, to see its bits and"
        " the five tokens the model thought likeliest.</p>\n"
        f'<p class="scale">bits per token {scale}</p>\n<div class="cards">{"".join(cards)}</div>'
    )


def _differences(document: dict[str, Any]) -> str:
    found = document["differences"]
    if not found:
        return ""

    def passages(items: list[dict[str, Any]], winner: str, loser: str) -> str:
        if not items:
            return f"<p>There is no passage where {escape(winner)} needs fewer bits than {escape(loser)}.</p>"
        return "".join(
            f'<article class="card"><h3>{escape(winner)} {p["bits"][0]:.0f} bits<span>{escape(loser)}'
            f' {p["bits"][1]:.0f} bits</span></h3><p class="passage">{escape(p["text"])}</p></article>'
            for p in items
        )

    best, second = found["best"], found["second"]
    return (
        "<h2>Where they differ most</h2>\n"
        f"<h3>Passages where {escape(best)} gains most on {escape(second)}</h3>"
        f'<div class="cards">{passages(found["for_best"], best, second)}</div>'
        f"<h3>Passages where {escape(second)} gains most on {escape(best)}</h3>"
        f'<div class="cards">{passages(found["for_second"], second, best)}</div>'
    )


def _samples(document: dict[str, Any], series: dict[str, int]) -> str:
    cards = "".join(
        f'<article class="card"><h3>{coloured_name(e, series)}</h3><p class="passage">{escape(e["sample"])}</p></article>'
        for e in document["entries"]
        if e.get("sample")
    )
    if not cards:
        return ""
    return (
        "<h2>What each of them writes</h2>\n<p>Drawn from each model's own distribution, from the beginning of a text, at"
        f' temperature 1, with seed {document["seed"]}.</p>\n<div class="cards">{cards}</div>'
    )


def _certificates(document: dict[str, Any], series: dict[str, int]) -> str:
    blocks = []
    for e in document["entries"]:
        if not e.get("result"):
            continue
        r = e["result"]
        items = "".join(
            f"<li{'' if held else ' class=bad'}>{'' if held else 'FAILS: '}<strong>{escape(name.replace('_', ' '))}</strong>:"
            f" {escape(r['certificate_details'].get(name, ''))}</li>"
            for name, held in r["certificate"].items()
        )
        items += "".join(f"<li>note: {escape(note)}</li>" for note in r["notes"])
        items += f"<li>{escape(_proof(e.get('proof')))}</li>"
        failed = [name for name, held in r["certificate"].items() if not held]
        word = "every check holds" if not failed else f'<span class="bad">{len(failed)} checks fail; not ranked</span>'
        blocks.append(f"<details><summary>{coloured_name(e, series)} — {word}</summary><ul>{items}</ul></details>")
    return (
        "<h2>Certificates</h2>\n<p>Each number was checked while it was measured: that no byte was skipped or counted twice,"
        " that probabilities sum to one, that no model saw the future. And each claim was cashed in: the beginning of the"
        " test text was compressed with the model to about the size it claims, and came back identical.</p>\n"
        + "\n".join(blocks)
    )


def _proof(proof: dict[str, Any] | None) -> str:
    if not proof or proof["claimed_bits"] is None:
        return "not proved by compression: the claim is infinite"
    words = "proved by compression" if proof["holds"] else "NOT proved by compression"
    return (
        f"{words}: {proof['original_bytes']:,} bytes of the test text became {proof['compressed_bytes']:,}"
        f" (claimed {proof['claimed_bits'] / 8:,.1f}) and came back {'identical' if proof['identical'] else 'CHANGED'}"
    )


def _reproduce(document: dict[str, Any]) -> str:
    versions = "".join(f"<li>{escape(k)} {escape(v)}</li>" for k, v in document["versions"].items())
    hashes = "".join(
        f"<li>{escape(name)}: {part['bytes']:,} bytes, sha256 {part['sha256']}</li>"
        for name, part in document["corpus"]["parts"].items()
    )
    command = f'<pre class="code">{escape(document["command"])}</pre>' if document["command"] else ""
    return (
        f"<h2>How to reproduce this</h2>\n{command}\n"
        "<p>A budget in seconds buys more steps on a faster machine, so neural models come out a little different there;"
        " count models come out the same everywhere.</p>\n"
        f"<details><summary>Versions and machine</summary><ul>{versions}</ul></details>\n"
        f"<details><summary>Hashes of the text</summary><ul>{hashes}</ul></details>"
    )
