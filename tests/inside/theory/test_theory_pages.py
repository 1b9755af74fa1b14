"""The pages of the topics in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of every topic."""
    folder = tmp_path_factory.mktemp("topics")
    lmlab.explain_gradients(width=4, length=10, steps=5, tries=1, html=folder / "gradients.html")
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize("topic", ["gradients"])
def test_it_opens_narrow_and_dark_wide_and_light_without_an_error_or_a_request(
    tab: Any, pages: dict[str, Path], topic: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: make test-page installs it")
    page = pages[topic]
    for width, scheme in ((390, "dark"), (1280, "light")):
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        found = axe.Axe().run(tab)
        assert found.violations_count == 0, found.generate_report()
    assert tab.problems == []
    assert set(tab.requests) == {page.as_uri()}
