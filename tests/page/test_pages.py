"""The three kinds of pages in a real browser. Needs chromium and playwright; `make test-page` installs them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

import lmlab
from browser_checks import accessible
from lmlab.comparison import Findings
from lmlab.comparison.report import render
from lmlab.records import from_json

WIDTHS = (390, 768, 1280)
KINDS = ("comparison", "sheet", "class", "student", "ledger index", "ledger")
KEY = """
given x: 1, D
given W: D, K
given y: 1, K onehot
let p = softmax(x @ W)
let J = -sum(y * log(p))
claim dJ/dW == x.T @ (p - y)
claim dJ/dx == (p - y) @ W.T
claim sum(p) == 1
"""
SHEET = """
given x: n  # <script>alert(1)</script>
given A: n, n
derive d(x @ A @ x)/dx
  = A @ x + A.T @ x
  = 2 * A @ x
claim sigmoid(x[0]) == 1 / (1 + exp(-x[0]))
claim norm(x)**2 == sum(x**2, axis=0) where x[0] > 0
claim sum(x) / n <= max(x)
clam 3
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind, each holding text that tries to break out of it."""
    folder = tmp_path_factory.mktemp("pages")
    text = folder / "text <with> & odd name.txt"
    lines = [
        "the cat sat on the mat & <looked> at the moon",
        "a man, a plan, a canal: Panama",
        "naïve café “quotes” 🙂",
    ]
    text.write_text("\n".join(lines[i % 3] + f" {i % 7}" for i in range(1200)))
    found = lmlab.compare(
        text, out=folder / "out", budget="4s", models=["uniform", "bag", "ngram"], command="lmlab compare text"
    )
    lmlab.check(_file(folder / "sheet.derive", SHEET), html=folder / "sheet.html")
    answers = {
        "ada": "claim dJ/dW == outer(x, p - y)\nclaim sum(p) == 1",
        "bo": "clam <b>3</b>\nclaim dJ/dW == (p - y) @ x.T\nclaim dJ/dx == (y - p) @ W.T",
    }
    lmlab.grade(answers, key=_file(folder / "key.derive", KEY), out=folder / "class", hints="what")
    lmlab.prove(["week2.I2", "bishop12.15", "quiz1.Q3"], html=folder / "ledger")
    return {
        "comparison": found.report,
        "sheet": folder / "sheet.html",
        "class": folder / "class" / "index.html",
        "student": folder / "class" / "bo.html",
        "ledger index": folder / "ledger" / "index.html",
        "ledger": folder / "ledger" / "quiz1.html",
    }


def _file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_from_disk_without_an_error_or_a_request(tab: Any, pages: dict[str, Path], kind: str) -> None:
    tab.goto(pages[kind].as_uri())
    assert tab.title()
    assert tab.locator("main h1").count() == 1
    assert tab.problems == []
    assert tab.requests == [pages[kind].as_uri()]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_scrolls_sideways(tab: Any, pages: dict[str, Path], kind: str) -> None:
    tab.goto(pages[kind].as_uri())
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_scrolls_sideways_has_a_shadow_where_there_is_more(
    tab: Any, pages: dict[str, Path], scheme: str
) -> None:
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": 400, "height": 900})
    tab.goto(pages["comparison"].as_uri())
    table = tab.locator(".scroll").first
    assert table.evaluate("e => e.scrollWidth > e.clientWidth + 100")

    def shadows(scrolled: int) -> tuple[bool, bool]:
        """Whether the edges at the left and at the right are of another colour than the page, in the row of a corner."""
        table.evaluate(f"e => e.scrollLeft = {scrolled}")
        top_WC = imread(BytesIO(table.screenshot()))[1]
        paper_C = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")[4:-1].split(",")
        left, right = (float(abs(top_WC[x, :3] * 255 - [int(c) for c in paper_C]).max()) > 20 for x in (0, -1))
        return left, right

    assert shadows(0) == (False, True)
    assert shadows(60) == (True, True)
    assert shadows(9999) == (True, False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_passes_an_accessibility_check_in_both_colour_schemes(
    tab: Any, pages: dict[str, Path], kind: str, scheme: str
) -> None:
    tab.emulate_media(color_scheme=scheme)
    for width in (390, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(pages[kind].as_uri())
        accessible(tab)


@pytest.mark.parametrize("kind", KINDS)
def test_dark_is_dark_and_light_is_light(tab: Any, pages: dict[str, Path], kind: str) -> None:
    tab.goto(pages[kind].as_uri())
    brightness = {}
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        colour = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        brightness[scheme] = sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    assert brightness["dark"] < 150 < 600 < brightness["light"]


def test_all_kinds_have_one_look(tab: Any, pages: dict[str, Path]) -> None:
    looks = set()
    for path in pages.values():
        tab.goto(path.as_uri())
        script = "['html', 'body', 'h1'].map(e => { const s = getComputedStyle(document.querySelector(e));"
        script += " return [s.fontFamily, s.fontSize, s.color, s.backgroundColor, s.maxWidth].join() }).join()"
        looks.add(tab.evaluate(script))
    assert len(looks) == 1


def test_hovering_a_token_shows_its_bits_and_five_favourites(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["comparison"].as_uri())
    token = tab.locator(".tokens b").nth(5)
    token.scroll_into_view_if_needed()
    token.hover()
    tip = tab.locator("#tip")
    assert tip.is_visible()
    assert "bits" in tip.inner_text()
    assert tip.locator("tr").count() == 5


def test_the_arrow_keys_walk_over_the_tokens(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["comparison"].as_uri())
    paragraph = tab.locator(".tokens").first
    paragraph.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    on = paragraph.locator("b.on")
    assert on.count() == 1
    assert on.evaluate("e => [...e.parentElement.children].indexOf(e)") == 2
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()


def test_formulas_are_drawn_and_the_wrong_step_is_marked(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["sheet"].as_uri())
    assert tab.locator("math").count() == 4
    wrong = tab.locator("mtr.wrong")
    assert wrong.count() == 1
    assert wrong.evaluate("e => [...e.parentElement.children].indexOf(e)") == 2
    assert tab.locator("math mfrac").first.bounding_box()["height"] > 20


def test_the_text_of_a_user_cannot_break_out_of_a_page(pages: dict[str, Path]) -> None:
    for kind, planted in (("comparison", "<looked>"), ("sheet", "<script>alert"), ("student", "<b>3")):
        source = pages[kind].read_text()
        assert planted not in source
        assert planted.replace("<", "&lt;").replace(">", "&gt;") in source


def test_the_page_is_the_same_for_the_same_comparison(pages: dict[str, Path]) -> None:
    report = pages["comparison"]
    found = from_json(Findings, json.loads((report.parent / "comparison.json").read_text()))
    assert render(found).encode() == report.read_bytes()
