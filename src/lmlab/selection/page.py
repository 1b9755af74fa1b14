"""The page of a search: the best model with its number, and the table of rungs."""

from __future__ import annotations

from pathlib import Path

from lmlab.disk.files import as_typed
from lmlab.selection.lines import cells, meaning, sentence, titles
from lmlab.selection.records import Found
from lmlab_derive.shared import html


def write_page(found: Found, path: Path) -> Path:
    """Write the page, one file that asks for nothing, and return its path."""
    return html.write(path, render(found))


def render(found: Found) -> str:
    """Return the page as HTML."""
    facts = {
        "trained on": f"{found.train_bytes:,} bytes",
        "chosen on": f"{found.valid_bytes:,} bytes of validation",
        "measured on": f"{found.result.document['data']['bytes']:,} of {found.test_bytes:,} held-out bytes",
        "time": f"{found.seconds:.0f} s of {found.budget_s:.0f} s",
        "machine": found.machine,
    }
    head = titles(found.shares)
    rows = [
        html.Row([html.escape(cell) for cell in cells(row, found.shares)], "failed" if row.ended == "failed" else "")
        for row in found.candidates
    ]
    finalists = [
        f"{name}: {bits:.4f}" for name, bits in sorted(found.choice.bits_per_byte.items(), key=lambda item: item[1])
    ]
    parts = [
        f"<h1>The best model of {html.escape(found.text)}</h1>\n",
        f'<p class="lead">{html.escape(sentence(found))}</p>\n',
        html.facts(facts),
        f"<p>{html.escape(found.division)}</p>\n" if found.division else "",
        "<h2>What was tried</h2>\n",
        html.table(head, rows, label="What was tried", words=[0, 1, len(head) - 1]),
        f'<p class="soft">{html.escape(meaning(found))}</p>\n',
        "<h2>The choice</h2>\n<p>Bits per byte of the same sample of the validation part, at the end:</p>\n",
        html.listed(finalists),
        f"<p>{html.escape(found.choice.why)}</p>\n" if found.choice.why else "",
        "<h2>The certificate</h2>\n",
        html.listed([f"{check.name}: {check.detail}" for check in found.result.checks]),
        "<h2>To use it</h2>\n",
        f"<pre>lmlab generate {html.escape(as_typed(Path(found.folder)))}\n"
        f"lmlab eval {html.escape(as_typed(Path(found.folder)))}\n{html.escape(found.command)}</pre>\n",
    ]
    return html.document(f"The best model of {found.text}", "".join(parts))
