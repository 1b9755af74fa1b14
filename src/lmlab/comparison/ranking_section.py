"""The sections of the page that hold numbers: the ranking, and what each model cost."""

from __future__ import annotations

import math
from typing import Any

from lmlab.comparison import figures
from lmlab.comparison.markup import dot, escape, good, number

COLUMNS = "rank,model,bits per byte,95% interval,perplexity/word,parameters,FLOPs,seconds,tokens/s,memory"


def ranking_chart(document: dict[str, Any], series: dict[str, int]) -> str:
    """All models and yardsticks on one scale, as SVG."""
    rows = [
        {
            "name": e["name"],
            "bits_per_byte": e["result"]["bits_per_byte"],
            "interval": e["result"]["interval"],
            "series": series[e["name"]],
        }
        for e in good(document)
    ]
    rows += [
        {"name": y["name"], "bits_per_byte": y["bits_per_byte"], "interval": None, "series": None}
        for y in document["yardsticks"]
    ]
    rows.sort(key=lambda row: row["bits_per_byte"])
    return figures.ranking(rows, document["corpus"]["entropy_bits_per_byte"])


def ranking(document: dict[str, Any], series: dict[str, int]) -> str:
    """Who is best, as a picture and as a table."""
    chart = ranking_chart(document, series)
    return (
        '<h2 id="ranking">The ranking</h2>\n'
        "<p>Bits per byte is what the text would weigh, per byte, if it were compressed with the model. It counts everything:"
        " unknown words are spelled out, nothing is skipped, every byte is predicted once. Dots are models with 95% intervals"
        " for other text of this kind; hollow dots are general compressors that were shown the training text; arrows point to"
        " what is too far off to draw.</p>\n"
        f"<figure tabindex='0'>{chart}</figure>\n{_table(document, series)}"
        "<p class='soft'>Two models share a letter exactly when they cannot be told apart: when the interval of their paired"
        " difference includes zero, all pairs taken together at 95%. The rank is the best that a model may have. Paired"
        " intervals are much narrower than the ones drawn above, because what is hard for one model is hard for the other too."
        f" {escape(_what_for(document))}"
        f" {escape(document['luck']['sentence'])}</p>"
    )


def _what_for(document: dict[str, Any]) -> str:
    """What the intervals of differences are for."""
    return f"These intervals are {document['ranking']['note']}." if document["ranking"] else ""


def _table(document: dict[str, Any], series: dict[str, int]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS.split(","))
    lines: list[tuple[float, str]] = []
    for e in document["entries"]:
        if not e.get("result"):
            reason = escape(e["error"] or e["status"])
            lines.append(
                (
                    math.inf,
                    f'<tr class="failed"><td></td><th scope="row">{escape(e["name"])}</th><td colspan="8">{reason}</td></tr>',
                )
            )
            continue
        r = e["result"]
        bits = r["bits_per_byte"]
        cells = [
            f"{e['rank']} {document['ranking']['models'][e['name']]['letters']}" if e["rank"] else "–",
            None,
            "infinite" if bits is None else f"{bits:.4f}",
            f"{r['interval'][0]:.3f} – {r['interval'][1]:.3f}" if r["interval"] else "",
            number(r["perplexity"].get("word")),
            f"{r['model']['parameters']:,}",
            number(e["training_flops"]),
            f"{e['seconds']:.1f}",
            number(e["tokens_per_second"]),
            f"{e['peak_memory_bytes'] / 1e6:,.0f} MB",
        ]
        name = f'<th scope="row">{dot(series[e["name"]])}{escape(e["name"])}</th>'
        row = "".join(name if c is None else f"<td>{c}</td>" for c in cells)
        style = "" if r["certified"] else ' class="failed"'
        lines.append((bits if bits is not None else 1e9, f"<tr{style}>{row}</tr>"))
    for y in document["yardsticks"]:
        row = f'<td></td><th scope="row">{escape(y["name"])}</th><td>{y["bits_per_byte"]:.4f}</td>'
        row += f'<td colspan="7">{escape(y["detail"])}</td>'
        lines.append((y["bits_per_byte"], f'<tr class="yardstick">{row}</tr>'))
    body = "\n".join(line for _, line in sorted(lines, key=lambda found: found[0]))
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Ranking table"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def learning(document: dict[str, Any], series: dict[str, int]) -> str:
    """Loss curves, and bits per byte against size and cost."""
    finished = good(document)
    learned = [
        {"name": e["name"], "curve": e["curve"], "series": series[e["name"]]} for e in finished if e.get("curve")
    ]
    counted = [
        (e["name"], e["result"]["bits_per_byte"], series[e["name"]])
        for e in finished
        if not e.get("curve") and e["model"] == "ngram"
    ]
    rows = [
        {
            "name": e["name"],
            "bits_per_byte": e["result"]["bits_per_byte"],
            "parameters": e["result"]["model"]["parameters"],
            "flops": e["training_flops"],
            "seconds": e["training"]["seconds"],
            "series": series[e["name"]],
        }
        for e in finished
        if e["model"] != "uniform"
    ]
    parts = ["<h2>What it cost</h2>"]
    if learned:
        parts.append(
            f"<figure tabindex='0'>{figures.curves(learned, counted)}<figcaption>Validation loss while training. The broken"
            " line is the n-gram model on the test part: it is counted, not trained. Curves that stay far above are left"
            " out.</figcaption></figure>"
        )
    if rows:
        parts.append(
            f"<figure tabindex='0'><div class='panels'>{''.join(figures.costs(rows))}</div>"
            "<figcaption>Each model's result against its size and cost. FLOPs are by formula: six per matrix entry and token,"
            " and attention.</figcaption></figure>"
        )
    return "\n".join(parts) if len(parts) > 1 else ""
