"""What a notebook shows of a thing: a heading, a few facts and a picture, with no stylesheet around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmlab_derive.shared.html import escape


def panel(title: str, facts: Mapping[str, str] | Sequence[tuple[str, str]], picture: str = "", notes: str = "") -> str:
    """HTML that looks right in any notebook. facts and notes: texts. picture: an SVG that holds its own colours."""
    cell = "text-align:left;padding:0 1em 0 0;border:0"
    rows = "".join(
        f'<tr><th style="{cell};font-weight:normal;opacity:.7">{escape(name)}</th><td style="{cell}">{escape(value)}</td></tr>'
        for name, value in (facts.items() if isinstance(facts, Mapping) else facts)
    )
    table = f"<table>{rows}</table>" if rows else ""
    words = f'<p style="opacity:.7">{escape(notes)}</p>' if notes else ""
    shown = f'<div style="max-width:44em">{picture}</div>' if picture else ""
    return f"<div><b>{escape(title)}</b>{table}{words}{shown}</div>"
