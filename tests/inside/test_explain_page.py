"""The page of `lmlab explain` in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab
from browser_checks import opens_narrow_and_wide

SENTENCE = 'the cat sat on the naïve log & <b> </script> "quoted"\n'


@pytest.fixture(scope="module")
def page(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models with different tokens on a text that tries to break out of the page."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    lmlab.explain([runs["ngram"], runs["words"], runs["gpt"]], SENTENCE * 3, html=path)
    return path


def test_it_opens_narrow_and_dark_wide_and_light_without_an_error_or_a_request(tab: Any, page: Path) -> None:
    opens_narrow_and_wide(tab, page)


def test_a_token_shows_what_every_model_expected_there(tab: Any, page: Path) -> None:
    tab.goto(page.as_uri())
    tab.locator(".tokens").nth(1).locator("b").nth(1).hover()  # the word " cat"
    tip = tab.locator("#tip").inner_text()
    assert all(name in tip for name in ("ngram", "words", "gpt"))
    assert "-gram" in tip
    marked = tab.evaluate("[...document.querySelectorAll('.tokens b.on')].map(b => b.textContent)")
    assert marked == [" ", " cat", " "]  # where the word begins, in the tokens of each


def test_a_long_text_is_laid_out_piece_by_piece_and_loses_nothing(
    tab: Any, runs: dict[str, Path], tmp_path: Path
) -> None:
    text = "".join(f"line {number} of the log & the cat\n" for number in range(60))
    (reading,) = lmlab.explain(runs["ngram"], text, html=tmp_path / "long.html").readings
    tab.goto((tmp_path / "long.html").as_uri())
    box = tab.locator(".tokens[data-of='0']")
    assert box.evaluate("e => e.textContent") == text
    assert box.locator("b").count() == len(reading.tokens)
    assert box.locator(".piece").count() > 3
    box.focus()
    last = box.locator("b").nth(len(reading.tokens) - 3)
    last.scroll_into_view_if_needed()
    last.hover()
    assert f"{reading.tokens[-3].bits:.2f} bits" in tab.locator("#tip").inner_text()
    assert tab.problems == []


def test_links_lead_to_every_section(tab: Any, page: Path) -> None:
    tab.goto(page.as_uri())
    links = tab.locator("nav a")
    assert links.all_inner_texts() == ["Its surprise, token by token", "What gpt looks at"]
    for link in links.all():
        assert tab.locator(str(link.get_attribute("href"))).locator("h2").first.inner_text() == link.inner_text()


def test_the_arrow_keys_walk_and_the_colours_change(tab: Any, page: Path) -> None:
    tab.goto(page.as_uri())
    tab.keyboard.press("Tab")
    tab.locator(".tokens").first.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".tokens").first.locator("b.on").evaluate("e => [...e.parentElement.children].indexOf(e)") == 2
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()
    classes = "[...document.querySelectorAll('.tokens')].map(p => [...p.children].map(b => b.className).join())"
    looks = []
    for choice in range(tab.locator("input[name=colour]").count()):
        tab.locator("input[name=colour]").nth(choice).check()
        looks.append(str(tab.evaluate(classes)))
    assert len(set(looks)) == len(looks) == 7


def test_the_heads_are_drawn_and_say_where_they_look(tab: Any, page: Path, runs: dict[str, Path]) -> None:
    found = lmlab.explain_attention(runs["gpt"], SENTENCE * 3)
    tab.add_init_script("window.requestIdleCallback = () => {}")  # a browser that never has time to spare
    tab.goto(page.as_uri())
    assert tab.locator(".said").inner_text() == ""  # then nothing is unpacked before it is near
    tab.locator("section.attention").scroll_into_view_if_needed()
    tab.locator(".said").filter(has_text="point at a token").wait_for()
    tab.locator("section.attention button").nth(3).click()
    strip = tab.locator(".strip")
    strip.focus()
    for _ in range(5):
        tab.keyboard.press("ArrowRight")
    said = tab.locator(".said")
    said.filter(has_text="head 2.2, after a").wait_for()  # of "the ca"
    tokens = {None: "⊢", **dict(enumerate(found.tokens))}
    shares = {place: found.weight(2, 2, 6, place) for place in (None, *range(6))}
    best = max(shares, key=lambda place: shares[place])
    assert f"{100 * shares[best]:.0f}%" in said.inner_text()
    assert str(tokens[best]).replace(" ", "␣") in said.inner_text()
    for place in ("section.attention button[aria-pressed=true]", "canvas.map"):  # keys walk wherever one has clicked
        tab.locator(place).click()
        before = said.inner_text()
        tab.keyboard.press("ArrowRight")
        tab.wait_for_function("b => !document.querySelector('.said').textContent.includes(b)", arg=before)
    tab.locator(".tokens[data-of='2'] b").nth(9).hover()  # pointing at it in the text above chooses it here too
    said.filter(has_text="after a").wait_for()
    drawn = "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    for canvas in tab.locator("section.attention canvas").all():
        canvas.scroll_into_view_if_needed()
        tab.wait_for_function(f"c => ({drawn})(c) > 3", arg=canvas.element_handle())
    assert tab.problems == []


def test_what_nobody_scrolls_to_is_drawn_all_the_same(tab: Any, page: Path) -> None:
    tab.set_viewport_size({"width": 1280, "height": 200})
    tab.goto(page.as_uri())
    tab.wait_for_function(
        """() => [...document.querySelectorAll("section.attention canvas")].every(canvas => {
          const { width, height } = canvas;
          return width && height && canvas.getContext("2d").getImageData(0, 0, width, height).data.some(Boolean);
        }) && [...document.querySelectorAll("section.attention, .piece")].every(
          part => getComputedStyle(part).contentVisibility === "visible")"""
    )
    assert tab.evaluate("scrollY") == 0
    assert [line for line in tab.problems if "readback" not in line] == []  # of the test's own looking
