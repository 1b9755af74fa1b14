"""A page is made of sections, each with its HTML, the data that its script reads, and that script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from lmlab_derive.shared import html


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page. title: what links to it say.

    data: JSON by the id it has in the page; texts: plain, likewise, and read one at a time.

    scripts: files of this package that read them.
    """

    html: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()


def page(title: str, opening: str, sections: Sequence[Section], command: str) -> str:
    """The whole page: nothing in it is fetched from anywhere. command: what makes it."""
    data = "".join(
        f'<script type="application/json" id="{name}">{_embedded(value)}</script>\n'
        for section in sections
        for name, value in section.data.items()
    )
    data += "".join(
        f'<script type="text/plain" id="{name}">{text}</script>\n'
        for section in sections
        for name, text in section.texts.items()
    )
    scripts = dict.fromkeys(script for section in sections for script in section.scripts)
    room = resources.files("lmlab.inside")
    code = "".join(f"<script>{room.joinpath(name).read_text(encoding='utf-8')}</script>\n" for name in scripts)
    made = f'<p class="soft">Made by <code>{html.escape(command)}</code></p>'
    links = " · ".join(f'<a href="#part-{i}">{html.escape(part.title)}</a>' for i, part in enumerate(sections))
    parts = [f'<div id="part-{i}">{part.html}</div>' for i, part in enumerate(sections)]
    body = "\n".join([opening, made, *([f"<nav>{links}</nav>"] if len(sections) > 1 else []), *parts])
    return html.document(title, body, after=f'<div id="tip" role="status" hidden></div>\n{data}{code}')


def _embedded(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
