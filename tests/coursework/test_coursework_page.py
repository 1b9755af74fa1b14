"""The pages for a class: formulas as MathML, nothing loaded from anywhere, every claim with its evidence."""

from __future__ import annotations

import re
import xml.dom.minidom
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lmlab.coursework import claims, run
from lmlab.coursework.page import prose, write
from lmlab_derive.shared.html import escape
from lmlab_derive.shared.mathml import to_mathml


@pytest.mark.parametrize("source", ["week2", "quiz1", "assignment2", "lab11", "bishop12"])
def test_every_formula_of_the_ledger_becomes_well_formed_mathml(source: str) -> None:
    for claim in claims(source=source):
        tree = xml.dom.minidom.parseString(to_mathml(claim.latex))
        (annotation,) = tree.getElementsByTagName("annotation")
        assert annotation.firstChild is not None
        assert annotation.firstChild.data == claim.latex  # type: ignore[attr-defined]


def test_subscripts_are_shown_and_code_is_left_alone() -> None:
    assert prose("h_{t-1} and `h_1 < 2`") == "h<sub>t-1</sub> and <code>h_1 &lt; 2</code>"
    assert prose("V^(n-1), e^C_n") == "V<sup>n-1</sup>, e<sup>C<sub>n</sub></sup>"
    assert prose("e^λ + 1") == "e<sup>λ</sup> + 1"
    assert prose("snake_case < 3") == "snake_case &lt; 3"
    assert prose("hW_2, 2d_k d and ½μ_aμ_aᵀ") == "hW<sub>2</sub>, 2d<sub>k</sub> d and ½μ<sub>a</sub>μ<sub>a</sub>ᵀ"


class Links(HTMLParser):
    """Collects whatever a page would fetch or lead to, and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.led_to: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "link", "img", "iframe", "object"):
            self.fetched.append(tag)
        if tag == "a" and given.get("href"):
            self.led_to.append(str(given["href"]))
        if given.get("id"):
            self.ids.append(str(given["id"]))


def test_a_formula_is_cut_at_its_wide_spaces_and_nowhere_else(tmp_path: Path) -> None:
    def parts(identifier: str) -> int:
        page = write(run(claims([identifier])), tmp_path)[1]
        return page.read_text(encoding="utf-8").count("<math ")

    assert parts("week2.I1b") == 2  # 8.32 → 8.15 and 10.63 → 6.65
    assert parts("quiz1.Q3.0d") == 1  # one matrix equation


def test_pages_stand_alone_and_show_every_claim(tmp_path: Path) -> None:
    entries = run(claims(["week2.I2", "bishop12.15"]))
    pages = write(entries, tmp_path / "pages")
    assert [page.name for page in pages] == ["index.html", "week2.html", "bishop12.html"]
    shown: list[str] = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        links = Links()
        links.feed(text)
        assert not links.fetched
        assert all(not link.startswith("http") for link in links.led_to)
        assert "url(" not in text
        assert "prefers-color-scheme: dark" in text
        assert "width=device-width" in text
        leads_to = [link.removeprefix("#") for link in links.led_to if link.startswith("#")]
        assert sorted(leads_to) == sorted(links.ids)  # the contents name every claim of the page
        shown += links.ids
    assert shown == [entry.claim.id for entry in entries]
    assert not list((tmp_path / "pages").glob("*.part"))
    for entry in entries:  # the document's own words beside the claim, and the evidence in steps
        text = (tmp_path / "pages" / f"{entry.claim.source}.html").read_text(encoding="utf-8")
        assert f"<blockquote>{escape(entry.claim.quote)}</blockquote>" in text
        if len(entry.outcome.steps) > 1:
            assert all(f"<li>{prose(step)}</li>" in text for step in entry.outcome.steps)
    assert "54.1" in pages[1].read_text(encoding="utf-8")


def test_the_index_counts_verdicts_by_document(tmp_path: Path) -> None:
    entries = run(claims(["week2.I2b", "week2.I2d", "bishop12.15.a"]))
    index = write(entries, tmp_path)[0].read_text(encoding="utf-8")
    first, second, total = index[: index.index("</table>")].split("<tr")[2:]
    counts = [re.findall(r"<td>(.*?)</td>", row) for row in (first, second, total)]
    assert counts == [["2", "1", "1"], ["1", "", "1"], ["3", "1", "2"]]  # claims, proved, refuted


def test_what_plus_or_minus_means_is_said_once_a_page(tmp_path: Path) -> None:
    page = write(run(claims(["lab11.6d.2", "lab11.6d.3"])), tmp_path)[1].read_text(encoding="utf-8")
    assert page.count("standard errors: confidence") == 1
