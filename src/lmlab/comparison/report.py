"""The report of a comparison: one self-contained HTML file, made from the findings alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from lmlab.comparison import figures
from lmlab.comparison.findings import Entry, Findings, Passage, Token
from lmlab.comparison.ranking_lines import COLUMNS, NAME, Line, lines, what_ranks_mean
from lmlab.comparison.remarks import FIRST_SEEDS, MOST_REMARKS, copied, remarks, unknown
from lmlab.page import numbers
from lmlab.page.figures import COLOURS, standalone
from lmlab.page.heat import heat, scale
from lmlab.page.raw_bytes import about_broken, about_lone
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape

SECONDS_IN_ALL = (
    "The seconds of this table are all that a model took here: getting ready, training, being measured and looked at closely."
    " Those of training alone are further down. Memory is the most that the whole process held meanwhile, with what it had"
    " loaded before and without that of a GPU."
)
_SUMMED = " Of a model with several seeds, seconds, tokens and FLOPs are those of all of them together."
ROW_STYLES = {
    "model": "",
    "uncertified": "failed",
    "failed": "failed",
    "yardstick": "yardstick",
    "entropy": "yardstick",
}


def write_report(found: Findings, path: Path, *, extra: str = "") -> Path:
    """Write the report, and its ranking chart as ranking.svg next to it; return the path of the report.

    extra: HTML of a section after the remarks.
    """
    if chart := chart_of(found):
        html.write(path.with_name("ranking.svg"), standalone(chart))
    return html.write(path, render(found, chart, extra))


def render(found: Findings, chart: str | None = None, extra: str = "") -> str:
    """Return the report as HTML. chart: the ranking chart, if it is drawn already. extra: HTML of one more section."""
    sections = [
        _opening(found),
        _ranking(found, chart_of(found) if chart is None else chart),
        _remarks(found),
        extra,
        _together(found),
        _costs(found),
        _reading(found),
        _differences(found),
        _samples(found),
        _certificates(found),
        _reproduce(found),
    ]
    readings = {
        series: [[token.b, token.f] for token in entry.excerpt] for series, entry in enumerate(found.measured_entries)
    }
    data = json.dumps(readings, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    script = resources.files("lmlab.comparison").joinpath("report.js").read_text(encoding="utf-8")
    return html.document(
        f"Language models on {found.corpus.name}",
        "\n".join(section for section in sections if section),
        skip_to=("ranking", "the ranking"),
        after='<div id="tip" role="status" hidden></div>\n'
        f'<script type="application/json" id="readings">{data}</script>\n<script>{script}</script>\n',
    )


def _series(found: Findings) -> dict[str, int]:
    """Return the colour index of each entry that has a result."""
    return {entry.name: index for index, entry in enumerate(found.measured_entries)}


def _dot(index: int) -> str:
    return f'<i class="dot" style="background:var(--series-{index % COLOURS})"></i>'


def _coloured(entry: Entry, found: Findings) -> str:
    """Return an entry's name with a dot of its colour, as HTML."""
    return f'<em class="name">{_dot(_series(found)[entry.name])}{escape(entry.name)}</em>'


def _opening(found: Findings) -> str:
    corpus, measured, warning = found.corpus, found.measured, copied(found)
    train = corpus.parts["train"]
    part = "" if measured.bytes == measured.of else f" of {measured.of:,}"
    facts = {
        "trained on": f"{train.bytes:,} bytes, {numbers.counted(train.documents or corpus.documents, 'document')}",
        "measured on": f"{measured.bytes:,} {'' if warning or unknown(found) else 'held-out '}bytes{part}",
        "time": f"{found.seconds:.0f} s{_of_what(found)}",
        "machine": found.versions.get("gpu", found.versions["processor"]),
    }
    bad = f'<p class="bad">{escape(warning)}</p>\n' if warning else ""
    return (
        f"<h1>Which model predicts {escape(corpus.name)} best?</h1>\n"
        f'<p class="lead">{_verdict(found)}</p>\n{bad}{html.facts(facts)}'
    )


def _remarks(found: Findings) -> str:
    """Return the most important remarks as a list, and the others folded."""
    said = [remark for remark in remarks(found) if remark != copied(found)]  # that one stands at the top of the page
    more = [
        *said[MOST_REMARKS:],
        *filter(None, [found.corpus.division]),
        *(f"{line[0].upper()}{line[1:]}." for line in found.corpus.overlap),
    ]
    first = html.listed(said[:MOST_REMARKS]) if said else ""
    return f"{first}{html.folded('More remarks', html.listed(more)) if more else ''}"


def _of_what(found: Findings) -> str:
    """Describe the budget: seconds for the whole comparison, or a budget per model."""
    if found.budget_s is not None:
        return f" of a budget of {found.budget_s:.0f} s"
    return f"; every model that learns had {found.each}" if found.each is not None else ""


def _verdict(found: Findings) -> str:
    """Return the main result in two sentences."""
    ranked = [entry for entry in found.entries if entry.rank is not None and numbers.finite(entry.bits_per_byte)]
    if not ranked:
        return "No model finished with a certified result."
    best = ranked[0]
    ends = best.result.interval if best.result is not None else None
    spread = f" (95% interval {ends[0]:.3f} to {ends[1]:.3f})" if ends else ""
    first = f"<strong>{escape(best.name)}</strong>, with {numbers.bits(best.bits_per_byte, 3)} bits per byte{spread}."
    tied = found.ranking.tied_with(best.name) if found.ranking is not None else []
    if tied:
        return f"{first} It cannot be told apart from {escape(' and '.join(tied))} by this comparison."
    pair = next(iter(found.pairs), None)
    if pair is None or pair.interval is None:
        return first
    whose = "kinds of model" if found.luck.measured or not found.luck.sentence else "trained models"
    return (
        f"{first} That is {pair.difference:.3f} less than {escape(pair.worse)}, and these two {whose} can be told apart:"
        f" the 95% interval of their difference, all pairs taken together, is {pair.interval[0]:.3f} to"
        f" {pair.interval[1]:.3f}."
    )


def chart_of(found: Findings) -> str:
    """Draw the ranked models and the baselines on one scale, as SVG; empty if there are none yet.

    A model without a rank is left out: a wrong score would stretch the scale of all others.
    """
    series = _series(found)
    dots = [
        figures.Dot(name=name, bits_per_byte=bits, interval=interval, series=series[name])
        for entry in found.trusted_entries
        if entry.result is not None
        for name, bits, interval in [(entry.name, entry.bits_per_byte, entry.result.interval)]
        if bits is not None
    ]
    dots += [figures.Dot(name=stick.name, bits_per_byte=stick.bits_per_byte) for stick in found.yardsticks]
    dots.sort(key=lambda dot: dot.bits_per_byte)
    return figures.ranking(dots, found.corpus.entropy_bits_per_byte) if dots else ""


def _ranking(found: Findings, chart: str) -> str:
    """Return the ranking section: the chart and the table."""
    series = _series(found)
    first = {entry.name for entry in found.entries if entry.rank == 1}

    def row(line: Line) -> Row:
        cells = [escape(cell) for cell in line.cells]
        if line.name in series and line.kind != "yardstick":
            cells[NAME] = _dot(series[line.name]) + cells[NAME]
        if line.detail:
            cells = [*cells[:3], escape(line.detail)]
        return Row(cells, ROW_STYLES[line.kind] or ("first" if line.name in first else ""))

    table = html.table(
        [escape(name) for name in COLUMNS], map(row, lines(found)), label="Ranking table", words=[NAME], named=NAME
    )
    return (
        '<h2 id="ranking">The ranking</h2>\n'
        "<p>Bits per byte is what the text would weigh, per byte, if it were compressed with the model. It counts everything:"
        " unknown words are spelled out, nothing is skipped, every byte is predicted once. Dots are models with 95%"
        " intervals; hollow dots are general compressors, and the table says what each of them was shown of the training text;"
        " arrows point to what is too far off to draw.</p>\n"
        f"{html.figure(chart)}{table}"
        f'<p class="soft">{escape(what_ranks_mean(found))} {escape(found.luck.sentence)} {SECONDS_IN_ALL}</p>'
    )


def _together(found: Findings) -> str:
    """Return the section on the mix of each tokenizer, with the cost of all its parts."""
    if not found.together:
        return ""
    rows = []
    for mix in found.together:
        bits = numbers.bits(mix.result.bits_per_byte)
        cells = [bits if mix.result.certified else f"{bits} (NOT certified)", numbers.interval(mix.result.interval)]
        cells += [mix.against_best, f"{mix.seconds:.1f}", f"{mix.result.parameters:,}"]
        rows.append(Row([escape(cell) for cell in (mix.made_of, *cells)], "" if mix.result.certified else "failed"))
    columns = [
        "made of",
        "bits per byte",
        "95% interval",
        "against its best part, with a 95% interval",
        "seconds of all parts",
        "parameters",
    ]
    first = f" {FIRST_SEEDS}" if found.several_seeds else ""
    return (
        '<h2 id="together">What they are worth together</h2>\n'
        "<p>A weighted sum of the probabilities of these models, its weights fitted on the validation part. It has no rank: it"
        f" had the time of all its parts, and to use it costs what they cost together.{first}</p>\n"
        + html.table(columns, rows, label="What they are worth together", words=[0, 3], named=0)
        + "".join(
            html.remark(f"The mix of the {mix.tokenizer} models.{mix.not_tried}")
            for mix in found.together
            if mix.untried
        )
    )


def _costs(found: Findings) -> str:
    """Return the section with loss curves, and with bits per byte against size and cost."""
    curves, level, costs = [], [], []
    for entry in found.trusted_entries:
        series = _series(found)[entry.name]
        bits, result, training = entry.bits_per_byte, entry.result, entry.training
        if bits is None or result is None or training is None:
            continue
        if entry.curve:
            curves.append(figures.Curve(name=entry.name, series=series, points=entry.curve))
        elif entry.valid_bits_per_byte is not None:
            level.append(figures.Dot(name=entry.name, bits_per_byte=entry.valid_bits_per_byte, series=series))
        if result.parameters:
            costs.append(
                figures.Cost(
                    name=entry.name,
                    series=series,
                    bits_per_byte=bits,
                    parameters=result.parameters,
                    flops=entry.training_flops,
                    seconds=training.seconds,
                )
            )
    parts = []
    if curves:
        whose = ", each model with its first seed" if found.several_seeds else ""
        caption = (
            f"Validation loss while training{whose}. A broken line is a model that is counted, not trained, on the same part."
            " These numbers are of the validation part and differ from those of the ranking, which are of the test part."
            " What stays far above is left out."
        )
        parts.append(html.figure(figures.curves(curves, level), caption))
    if costs:
        caption = (
            "Each model's result against its size and cost. FLOPs are by formula: six per matrix entry and token, and"
            f" attention.{_SUMMED if found.several_seeds else ''} Point at a dot to see whose it is; where they crowd, those"
            " that nothing cheaper is as good as are named first."
        )
        parts.append(html.figure(f'<div class="panels">{"".join(figures.costs(costs))}</div>', caption))
    parts.append(_who_had_what(found))
    return "\n".join(["<h2>What it cost</h2>", *filter(None, parts)]) if any(parts) else ""


def _who_had_what(found: Findings) -> str:
    """Return the table of training seconds and tokens per model, since a model may be behind for lack of time alone."""
    rows = []
    for entry in found.measured_entries:
        training = entry.training
        if training is None:
            continue
        planned = "–" if training.planned_tokens is None else f"{training.planned_tokens:,.0f}"
        cells = [_coloured(entry, found), f"{training.seconds:.1f}", f"{training.tokens:,}", planned]
        rows.append(Row(cells))
    if not rows:
        return ""
    more = ", ".join(f"{name} {share:g} times" for name, share in found.shares.items())
    equal = "equally long" if found.budget_s is not None else f"for {found.each} each"
    columns = ["model", "seconds of training", "tokens read", "tokens planned"]
    return (
        f"<h3>Who had what</h3>\n<p>Learned models were to train {equal}"
        f"{escape(f', but {more} as long as the others') if more else ''}; counted ones take what they need. The planned"
        f" tokens are those for which a model's size was chosen.{_SUMMED if found.several_seeds else ''}</p>\n"
        + html.table(columns, rows, label="Who had what", words=[0], named=0)
    )


def _reading(found: Findings) -> str:
    boxes = []
    for series, entry in enumerate(found.measured_entries):
        if not entry.excerpt:
            continue
        tokens = "".join(f'<b class="s{heat(token.b)}">{escape(token.t)}</b>' for token in entry.excerpt)
        text = (
            f'<p class="tokens" data-of="{series}" tabindex="0" role="group"'
            f' aria-label="The paragraph under {escape(entry.name)}; arrow keys walk over the tokens">'
            f"{_in_its_text(tokens, entry.excerpt_cut)}</p>"
        )
        here = numbers.bits(_bits_per_byte(entry.excerpt), 2)
        boxes.append(html.card(_coloured(entry, found), text, beside=f"{here} bits per byte here"))
    if not boxes:
        return ""
    read = [token for entry in found.measured_entries for token in entry.excerpt]
    pieces = [piece for token in read for piece in (token.t, *(likely for likely, _ in token.f))]
    return (
        "<h2>The same paragraph, read by each model</h2>\n"
        "<p>Held-out text, coloured by surprise. Point at a token, or walk over it with the arrow keys, to see its bits and"
        " the five tokens the model thought likeliest.</p>\n"
        f"{html.remark(about_lone(pieces))}{scale()}{html.cards(boxes)}"
    )


def _bits_per_byte(read: Sequence[Token]) -> float | None:
    """Return the bits per byte of some tokens; None if one of them has probability zero."""
    bits = [token.b for token in read]
    size = sum(len(token.t.encode()) if token.n is None else token.n for token in read)
    return None if None in bits else sum(filter(None, bits)) / max(1, size)


def _in_its_text(passage: str, cut: tuple[bool, bool]) -> str:
    """Return a passage as HTML, with an ellipsis on each side where its line continues."""
    return ("…" if cut[0] else "") + passage + ("…" if cut[1] else "")


def _differences(found: Findings) -> str:
    differ = found.differences
    if not differ:
        return ""

    def gains(winner: str, loser: str, passages: Sequence[Passage]) -> str:
        better, worse = escape(winner), escape(loser)
        boxes = [
            html.card(
                f"{better} {passage.bits[0]:.0f} bits",
                f'<p class="passage">{_in_its_text(escape(passage.text), passage.cut)}</p>',
                beside=f"{worse} {passage.bits[1]:.0f} bits",
            )
            for passage in passages
        ]
        none = f"<p>There is no passage where {better} needs clearly fewer bits than {worse}.</p>"
        return f"<h3>Passages where {better} gains most on {worse}</h3>{html.cards(boxes) if boxes else none}"

    best, second = differ.best, differ.second
    return (
        "<h2>Where they differ most</h2>\n"
        f"{gains(best, second, differ.for_best)}{gains(second, best, differ.for_second)}"
    )


def _samples(found: Findings) -> str:
    boxes = [
        html.card(_coloured(entry, found), f'<p class="passage">{escape(entry.sample)}</p>')
        for entry in found.measured_entries
        if entry.sample
    ]
    if not boxes:
        return ""
    return (
        "<h2>What each of them writes</h2>\n<p>Drawn from each model's own distribution, from the beginning of a text, at"
        f" temperature 1, with seed {found.seed}.</p>\n"
        f"{html.remark(about_broken(entry.sample for entry in found.measured_entries))}{html.cards(boxes)}"
    )


def _certificates(found: Findings) -> str:
    blocks = []
    for entry in found.measured_entries:
        assert entry.result is not None
        items = "".join(
            f"<li{'' if check.passed else ' class=bad'}>{check.word}: <strong>{escape(check.name.replace('_', ' '))}</strong>:"
            f" {escape(check.detail)}</li>"
            for check in entry.result.checks
        )
        items += "".join(f"<li>note: {escape(note)}</li>" for note in entry.result.notes)
        verdict, certified = escape(entry.result.verdict), entry.result.certified
        word = verdict if certified else f'<span class="bad">{verdict}; not ranked</span>'
        blocks.append(html.folded(f"{_coloured(entry, found)} — {word}", f"<ul>{items}</ul>"))
    return (
        "<h2>Certificates</h2>\n<p>Each number was checked while it was measured: that no byte was skipped or counted twice,"
        f" that probabilities sum to one, that no model saw the future.{_cashed_in(found)}</p>\n" + "".join(blocks)
    )


def _cashed_in(found: Findings) -> str:
    """Return sentences that tell for how many models compression reached the claimed size."""
    proofs = [entry.proof for entry in found.measured_entries if entry.proof is not None]
    met = sum(proof.holds for proof in proofs)
    infinite = sum(proof.claimed_bits is None for proof in proofs)
    if not proofs:
        return ""
    how = "to the size that their recorded scores claim, within a byte and rounding, and came back identical"
    sizes = sorted({proof.original_bytes for proof in proofs})
    size = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,}"
    rest = len(proofs) - met - infinite
    return (
        f" And claims were cashed in: pieces of the measured text were compressed with {met} of {len(proofs)} models"
        f" {how}. That is a sample, as large as there was time for: {size} bytes with each model, of {found.measured.bytes:,}"
        " measured."
        + (f" {infinite} claim infinitely many bits, which nobody can pay." if infinite else "")
        + (f' <span class="bad">{rest} did not hold what they claim, and are not ranked.</span>' if rest else "")
    )


def _reproduce(found: Findings) -> str:
    command = f'<pre class="code">{escape(found.command)}</pre>' if found.command else ""
    hashes = [f"{name}: {part.bytes:,} bytes, sha256 {part.sha256}" for name, part in found.corpus.parts.items()]
    return (
        f"<h2>How to reproduce this</h2>\n{command}\n"
        "<p>A budget in seconds buys more steps on a faster machine, so neural models come out a little different there;"
        " count models come out the same everywhere.</p>\n"
        + html.folded("Versions and machine", html.listed(f"{name} {which}" for name, which in found.versions.items()))
        + html.folded("Hashes of the text", html.listed(hashes))
    )
