"""What every page must do in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def accessible(tab: Any) -> None:
    """Whoever cannot see what the tab shows, or points with a keyboard, can use it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: make test-page installs it")
    found = axe.Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()


def opens_narrow_and_wide(tab: Any, page: Path) -> None:
    """On a dark telephone and on a light screen, without an error or a request."""
    for width, scheme in ((390, "dark"), (1280, "light")):
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        accessible(tab)
    assert tab.problems == []
    assert set(tab.requests) == {page.as_uri()}
