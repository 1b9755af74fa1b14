"""The pages of the topics in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab
from browser_checks import opens_narrow_and_wide

SET = """([name, value]) => {
  const input = document.getElementById(name);
  input.value = value;
  input.dispatchEvent(new Event('input', { bubbles: true }));
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of every topic."""
    folder = tmp_path_factory.mktemp("topics")
    few = {"cells": ["lstm"], "scales": [1.0], "forget_biases": [3.0]}
    lmlab.explain_gradients(**few, width=4, length=10, steps=5, tries=1, html=folder / "gradients.html")  # type: ignore[arg-type]
    lmlab.explain_sandbox(html=folder / "sandbox.html")
    lmlab.explain_positions(width=16, length=20, html=folder / "positions.html")
    lmlab.explain_dot_products(widths=[4, 16], draws=20, html=folder / "dot-products.html")
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize("topic", ["gradients", "sandbox", "positions", "dot-products"])
def test_it_opens_narrow_and_dark_wide_and_light_without_an_error_or_a_request(
    tab: Any, pages: dict[str, Path], topic: str
) -> None:
    opens_narrow_and_wide(tab, pages[topic])


def numbers_of(found: Any) -> dict[str, float]:
    """What the page shows, by the names it gives them."""
    fields = ("mean", "deviation", "near", "alone", "lost", "distance")
    ways = [(heads, way) for heads in ("one", "two") for way in ("sampled", "closed")]
    return {f"{h}.{w}.{f}": getattr(getattr(getattr(found, h), w), f) for h, w in ways for f in fields}


def read(tab: Any) -> tuple[dict[str, float], dict[str, float]]:
    """The settings of the sandbox's page, and the numbers it shows."""
    settings = (
        "Object.fromEntries([...document.querySelectorAll('#settings input')].map(e => [e.name, Number(e.value)]))"
    )
    numbers = (
        "Object.fromEntries([...document.querySelectorAll('[data-of]')].map(e => [e.dataset.of, +e.dataset.value]))"
    )
    return tab.evaluate(settings), tab.evaluate(numbers)


def test_the_sandbox_computes_in_the_page_what_python_computes(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["sandbox"].as_uri())
    seen = []
    changes: list[dict[str, float]] = [
        {},
        {"keys": 2, "query_a": 3.3, "query_b": 17, "noise": 0.2, "seed": 7},
        {"keys": 10, "temperature": 0.2, "overlap": 0.9, "stretch": 1, "value_b": 300, "samples": 333},
        {"stretch": 0, "noise": 0, "query_b": 0, "temperature": 5},
    ]
    for change in changes:
        for name, value in change.items():
            tab.evaluate(SET, [name, value])
        settings, numbers = read(tab)
        assert all(settings[name] == pytest.approx(value) for name, value in change.items())
        whole = {name: int(settings[name]) for name in ("keys", "samples", "seed")}
        found = lmlab.explain_sandbox(**(settings | whole))  # type: ignore[arg-type]
        assert numbers == pytest.approx(numbers_of(found), abs=1e-6)
        assert float(tab.locator("#score-deviation").get_attribute("data-value")) == pytest.approx(
            found.score_deviation
        )
        seen.append(tuple(numbers.values()))
    assert len(set(seen)) == len(changes)
    assert tab.problems == []


def test_the_sandbox_is_used_with_the_keyboard_alone(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["sandbox"].as_uri())
    before, _ = read(tab)
    tab.locator("#query_a").focus()
    tab.keyboard.press("ArrowRight")
    after, numbers = read(tab)
    assert after["query_a"] > before["query_a"]
    found = lmlab.explain_sandbox(query_a=after["query_a"])
    assert numbers == pytest.approx(numbers_of(found), abs=1e-6)
    tab.locator("button[data-preset='Average two']").focus()
    tab.keyboard.press("Enter")
    assert "half-way" in tab.locator("#told").inner_text()
    settings, numbers = read(tab)
    assert settings["stretch"] == 0
    assert numbers["one.closed.near"] == numbers["two.closed.near"] == 1
    assert tab.locator("#cloud-one circle").count() > 600


def test_the_sandbox_says_at_table_and_line_where_its_closed_forms_do_not_hold(
    tab: Any, pages: dict[str, Path]
) -> None:
    tab.goto(pages["sandbox"].as_uri())
    warnings, dashed = tab.locator("[data-noisy]"), tab.locator("#histogram-one path[stroke-dasharray]")
    assert [element.is_visible() for element in warnings.all()] == [False, False, False]
    assert dashed.count() == 0
    tab.locator("button[data-preset='A little noise in every key']").click()
    numbers = read(tab)[1]
    # what must not pass in silence
    assert numbers["one.sampled.deviation"] > 0.3 > 1e-6 > numbers["one.closed.deviation"]
    assert [element.is_visible() for element in warnings.all()] == [True, True, True]
    assert "do not hold" in warnings.first.inner_text()
    assert dashed.count() == 1


def test_the_pictures_of_the_sandbox_show_what_its_numbers_say(tab: Any, pages: dict[str, Path]) -> None:
    tab.goto(pages["sandbox"].as_uri())
    script = "which => [...document.querySelectorAll(`#histogram-${which} rect`)].map(e => +e.getAttribute('height'))"
    for which, heads in vars(lmlab.explain_sandbox()).items():
        if which in ("one", "two"):
            heights = tab.evaluate(script, which)
            most = max(*heads.sampled.histogram, *heads.closed.histogram)
            assert heights == pytest.approx([138 * share / most for share in heads.sampled.histogram], abs=1e-6)
