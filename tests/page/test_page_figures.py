"""Figures: names cover nothing, colours come from the page, and a file of its own needs no page."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

from matplotlib.figure import Figure

from lmlab.page import figures
from lmlab.page.notebook import panel


def test_names_of_crowded_points_cover_no_point_and_no_other_name() -> None:
    figure = Figure(figsize=(3.9, 3.4), layout="constrained")
    axes = figure.subplots()
    points = [(f"model-{i}", 10.0 + 0.05 * i, 2.0 + 0.004 * i) for i in range(7)] + [("far", 30.0, 4.0)]
    for _, x, y in points:
        axes.plot([x], [y], "o")
    axes.margins(0.2)
    figures.name_points(figure, axes, points)
    pixel = figure.dpi / 72
    boxes = []
    for note in axes.texts:
        x, y = axes.transData.transform(note.xy) / pixel
        dx, dy = note.xyann
        width, height = figures.LETTER_WIDTH * figures.NAME_SIZE * len(note.get_text()), 1.1 * figures.NAME_SIZE
        boxes.append((x + dx - width / 2, y + dy - height / 2, x + dx + width / 2, y + dy + height / 2))
        boxes.append((x - 4, y - 4, x + 4, y + 4))
    names = boxes[::2]
    assert all(figures._overlap(a, b) == 0 for a, b in itertools.combinations(names, 2))
    assert all(figures._overlap(name, point) == 0 for name in names for point in boxes[1::2])


def drawn() -> str:
    with figures.drawing(3, 2) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=figures.series_colour(1))
        axes.set_xlabel("x & <y>")
        return figures.svg(figure, 'A "title" & more')


def test_a_figure_on_a_page_has_its_colours_from_the_page_and_one_on_its_own_has_them_inside() -> None:
    inline = drawn()
    assert "var(--series-1)" in inline
    assert not any(marker in inline for marker in figures.VARIABLES)
    alone = figures.standalone(inline)
    assert "var(" not in alone
    for svg in (inline, alone):
        tree = ElementTree.fromstring(svg)
        assert tree.attrib["aria-label"] == 'A "title" & more'
        assert "x & <y>" in "".join(tree.itertext())


def test_the_same_figure_is_the_same_text() -> None:
    assert drawn() == drawn()


def test_no_words_of_a_panel_become_markup() -> None:
    shown = panel("a <b> & c", {"a <b> & c": "a <b> & c"}, notes="a <b> & c")
    assert shown.count("a &lt;b&gt; &amp; c") == 4
    assert "<b> &" not in shown
