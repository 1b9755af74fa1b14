"""The page in a real browser. Needs chromium and playwright; `make test-page` installs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmlab.comparison import compare
from lmlab.comparison.report import escape, render, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (390, 768, 1280)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    text = folder / "text <with> & odd name.txt"
    lines = [
        "the cat sat on the mat & <looked> at the moon",
        "a man, a plan, a canal: Panama",
        "naïve café “quotes” 🙂",
    ]
    text.write_text("\n".join(lines[i % 3] + f" {i % 7}" for i in range(1200)))
    found = compare(
        text, out=folder / "out", budget="4s", models=["uniform", "bag", "ngram"], command="lmlab compare text"
    )
    return write_report(found.to_json(), folder / "out" / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-page installs it")
    if CHROMIUM is None:
        pytest.skip("needs chromium: make test-page installs it")
    with playwright.sync_playwright() as p:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        browser = p.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.problems, page.requests = [], []
    page.on("console", lambda m: page.problems.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: page.problems.append(str(e)))
    page.on("request", lambda r: page.requests.append(r.url))
    page.goto(report.as_uri())
    yield page
    page.close()


def test_it_opens_from_disk_without_an_error_or_a_request(page: Any, report: Path) -> None:
    assert page.title().startswith("Language models on")
    assert page.problems == []
    assert page.requests == [report.as_uri()]


def test_hovering_a_token_shows_its_bits_and_five_favourites(page: Any) -> None:
    token = page.locator(".tokens b").nth(5)
    token.scroll_into_view_if_needed()
    token.hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "bits" in tip.inner_text()
    assert tip.locator("tr").count() == 5


def test_the_arrow_keys_walk_over_the_tokens(page: Any) -> None:
    paragraph = page.locator(".tokens").first
    paragraph.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    on = paragraph.locator("b.on")
    assert on.count() == 1
    assert on.evaluate("e => [...e.parentElement.children].indexOf(e)") == 2
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_scrolls_sideways(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_passes_an_accessibility_check_in_both_colour_schemes(page: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: make test-page installs it")
    page.emulate_media(color_scheme=scheme)
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_dark_mode_is_dark(page: Any) -> None:
    brightness = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        brightness[scheme] = sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    assert brightness["dark"] < 150 < 600 < brightness["light"]


def test_the_text_of_a_user_cannot_break_out_of_the_page(report: Path) -> None:
    source = report.read_text()
    assert "<looked>" not in source
    assert "&lt;looked&gt;" in source


def test_the_page_is_the_same_for_the_same_comparison(report: Path) -> None:
    import json

    document = json.loads((report.parent / "comparison.json").read_text())
    assert render(document).encode() == report.read_bytes()


def test_control_characters_are_shown_as_pictures() -> None:
    assert escape("a\x00b\r\n") == "a␀b␍\n"
