"""The figures of a comparison: what matters has room, and odd rankings can be drawn."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from lmlab.comparison import figures
from lmlab.comparison.figures import Cost, Curve, Dot
from lmlab.comparison.findings import CurvePoint
from lmlab.page.figures import COLOURS


def dot(name: str, bits: float, series: int | None = 0, width: float = 0.1) -> Dot:
    interval = None if series is None else (bits - width, bits + width)
    return Dot(name=name, bits_per_byte=bits, interval=interval, series=series)


def ticks(svg: str) -> list[float]:
    return [float(t) for t in re.findall(r">(\d+\.\d)</text>", svg)]


def test_what_is_far_off_does_not_squeeze_the_rest() -> None:
    close = [dot("a", 1.3), dot("b", 1.5), dot("zip", 2.0, None)]
    assert max(ticks(figures.ranking([*close, dot("uniform", 8.5)], None))) < 2.5
    assert ">8.500<" in figures.ranking([*close, dot("uniform", 8.5)], None)


@pytest.mark.parametrize("bits", [[2.0], [2.0, 2.0], [1.0, 99.0], [0.0, 0.0002, 0.05, 3.0]])
def test_one_model_equal_models_and_enormous_differences_can_be_drawn(bits: list[float]) -> None:
    svg = figures.ranking([dot(f"model {i}", b, width=0.0) for i, b in enumerate(bits)], entropy=0.9)
    assert re.findall(r">model (\d)<", svg) == [str(i) for i in range(len(bits))]
    assert "exact entropy" in svg


def test_next_to_the_best_is_drawn_to_scale_though_it_is_many_times_as_much() -> None:
    svg = figures.ranking([dot("zip", 0.0, None), dot("ngram", 0.08, width=0.06), dot("bag", 3.0)], None)
    assert max(float(tick) for tick in re.findall(r">(\d\.\d\d)</text>", svg)) >= 0.14


def test_a_cost_that_nobody_has_gets_no_panel() -> None:
    counted = Cost(name="ngram", bits_per_byte=2.0, parameters=10, flops=None, seconds=1.0, series=0)
    assert len(figures.costs([counted])) == 2
    assert len(figures.costs([counted, replace(counted, name="gpt", flops=1e12)])) == 3


def curve(name: str, series: int, *bits: float) -> Curve:
    return Curve(name=name, series=series, points=[CurvePoint(seconds=i, bits_per_byte=b) for i, b in enumerate(bits)])


def test_loss_curves_name_only_what_they_draw_and_a_single_validation_is_a_point() -> None:
    svg = figures.curves(
        [curve("near", 0, 3.0, 2.0), curve("far", 1, 9.0, 8.0), curve("once", 2, 2.5)], [dot("level", 2.2, 3)]
    )
    assert re.findall(r">(near|far|once|level)<", svg) == ["near", "once", "level"]
    assert svg.count("<use ") > figures.curves([curve("near", 0, 3.0, 2.0)], []).count("<use ")


def test_two_curves_of_one_colour_differ_in_their_dashes() -> None:
    pair = [curve("a", 0, 3.0, 2.0), curve("b", COLOURS, 3.0, 2.1)]
    assert "stroke-dasharray" in figures.curves(pair, [])
    assert "stroke-dasharray" not in figures.curves(pair[:1], [])


TEXT = re.compile(
    r'<text style="font-size: (?P<size>[\d.]+)px(?P<style>[^"]*)" x="(?P<x>[\d.-]+)" y="(?P<y>[\d.-]+)"'
    r'(?: transform="rotate\((?P<turn>[\d.-]+)[^"]*")?>(?P<text>[^<]*)<'
)


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """Left, top, right and bottom of every text, about: as wide as most letters are."""
    found = {}
    for text in TEXT.finditer(svg):
        size, x, y = float(text["size"]), float(text["x"]), float(text["y"])
        long = 0.5 * size * len(text["text"])
        before = long * (0.5 if "text-anchor: middle" in text["style"] else "text-anchor: end" in text["style"])
        if text["turn"] and float(text["turn"]):
            found[text["text"]] = (x - 0.75 * size, y - before, x, y + long - before)
        else:
            found[text["text"]] = (x - before, y - 0.75 * size, x + long - before, y)
    return found


@pytest.mark.parametrize("letters", [12, 30, 31, 36, 80])
@pytest.mark.parametrize("bits", [[1.2, 1.9, 2.4], [1.4001, 1.4002, 1.4004], [0.0012, 0.0015, 0.003]])
def test_long_names_and_close_numbers_stay_in_the_picture(letters: int, bits: list[float]) -> None:
    names = [f"{'module.of_mine:Class' * 4}"[: letters - 1] + str(i) for i in range(3)]
    shown = [figures._short(name) for name in names]
    assert len(set(shown)) == 3
    assert max(map(len, shown)) <= figures.MOST_LETTERS
    dots = [dot(name, b, series=i, width=b / 50) for i, (name, b) in enumerate(zip(names, bits, strict=True))]
    paid = [
        Cost(name=d.name, bits_per_byte=d.bits_per_byte, parameters=10 ** (3 + i), flops=None, seconds=1.0, series=i)
        for i, d in enumerate(dots)
    ]
    for svg in (figures.ranking(dots, entropy=None), *figures.costs(paid)):
        width, height = (float(n) for n in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
        texts = boxes(svg)
        assert len(texts) == len(set(re.findall(r"<text [^>]*>([^<]*)<", svg)))
        assert set(shown) < set(texts)
        outside = {t: box for t, box in texts.items() if box[0] < 0 or box[1] < 0 or box[2] > width or box[3] > height}
        assert not outside


def test_a_legend_has_as_many_columns_as_its_names_leave_room_for() -> None:
    def rows(*names: str) -> int:
        svg = figures.curves([curve(name, i, 3.0, 2.0) for i, name in enumerate(names)], [])
        return len({boxes(svg)[name][1] for name in names})

    assert rows("gpt", "lstm", "rnn") == 1
    assert rows(*(f"rnn-attention · words:2000{i}" for i in range(3))) == 2
    assert rows(*(f"{'name' * 8}{i}" for i in range(3))) == 3


@pytest.mark.parametrize(
    ("values", "wanted"),
    [([20, 70], {"20", "50"}), ([1000, 1500], {"1k", "1.2k", "1.4k"}), ([10, 10**6], {"100", "10k"})],
)
def test_an_axis_of_costs_has_marks_however_close_they_are(values: list[int], wanted: set[str]) -> None:
    paid = [
        Cost(name=str(x), bits_per_byte=1.5 + i, parameters=x, flops=None, seconds=0.0, series=i)
        for i, x in enumerate(values)
    ]
    (svg,) = figures.costs(paid)
    assert wanted <= set(re.findall(r">([\d.]+[kM]?)</text>", svg))


def crowd(count: int) -> list[Cost]:
    """Models of much the same cost and result; the last of them cheap and best."""
    models = [
        Cost(
            name=f"model {i} (bpe:1000)",
            series=i,
            bits_per_byte=2 + 0.01 * (7 * i % count),
            parameters=10_000 + 300 * (11 * i % count),
            flops=None,
            seconds=0.0,
        )
        for i in range(count)
    ]
    return [*models, replace(models[0], name="unbeaten & cheap", bits_per_byte=1.9, parameters=9_000)]


@pytest.mark.parametrize("count", [5, 40])
def test_where_dots_crowd_names_are_left_out_rather_than_written_over_each_other(count: int) -> None:
    (svg,) = figures.costs(crowd(count))
    named = {text: box for text, box in boxes(svg).items() if "model" in text or "unbeaten" in text}
    assert "unbeaten &amp; cheap" in named
    assert (len(named) == count + 1) == (count == 5)
    assert len(named) > 5
    for (left, top, right, bottom), (left_2, top_2, right_2, bottom_2) in itertools.combinations(named.values(), 2):
        assert right <= left_2 or right_2 <= left or bottom <= top_2 or bottom_2 <= top


def test_every_dot_says_whose_it_is() -> None:
    (svg,) = figures.costs(crowd(40))
    tips = re.findall(r"<title>(.*?)</title>", svg)
    assert len(set(tips)) == 41
    assert "unbeaten &amp; cheap: 1.900 bits per byte, 9,000 parameters" in tips


def test_curves_that_all_stay_far_above_what_was_counted_are_drawn_all_the_same() -> None:
    svg = figures.curves([curve("gpt", 0, 9.0, 8.8), curve("worse", 1, 12.0, 11.9)], [dot("ngram", 1.6, 2)])
    assert re.findall(r">(gpt|worse|ngram)<", svg) == ["gpt", "ngram"]
