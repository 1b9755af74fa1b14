"""Gates of recurrent networks over a text: those that make the states of the fast kernel, and what units follow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lmlab
from browser_checks import accessible
from command_line import Lmlab, done, refused
from lmlab.config import Mistake
from lmlab.inside.gates import FOLLOWS, correlation, features, followed, least_correlation

SENTENCE = "the cat sat on the mat\nand The dog\n"


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_the_states_are_those_of_torch_and_the_gates_make_them(runs: dict[str, Path], name: str) -> None:
    run = lmlab.load(runs[name])
    found = lmlab.explain_gates(run, SENTENCE)
    assert found.difference < 1e-5
    # torch.nn by its own formulas, with the weights of the first layer
    model: Any = run.load("cpu")
    ids = torch.from_numpy(run.tokenizer.encode(SENTENCE).ids.astype("int64"))
    x_1TX = model.embed(nn.functional.pad(ids[None], (1, 0), value=model.vocab_size), torch.float32).detach()
    width, weights = model.config.width, model.layers[0].weights(torch.float32)
    theirs = (nn.LSTM if name == "lstm" else nn.GRU)(x_1TX.shape[2], width, batch_first=True)
    blocks = [w.detach().clone() for w in weights]
    if name == "gru":  # torch's update gate is 1 - z, and stands second
        blocks = [torch.cat([r, -z, h]) for z, r, h in (b.chunk(3) for b in blocks)]
    for ours, parameter in zip(blocks, (theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0), strict=True):
        parameter.data = ours
    theirs.bias_hh_l0.data.zero_()
    expected_TH = theirs(x_1TX)[0][0, 1:].detach().numpy()
    assert np.allclose(found.layers[0].values["state h"], expected_TH, atol=1e-5)
    for layer in found.layers:
        for gate in layer.gates:
            assert 0 <= layer.values[gate.name].min() <= gate.mean <= layer.values[gate.name].max() <= 1


def test_a_unit_keeps_as_long_as_its_gate_says(runs: dict[str, Path]) -> None:
    layer = lmlab.explain_gates(runs["lstm"], SENTENCE).layers[1]
    forget_T = layer.values["forget gate f"][:, 3].astype(float)
    left = math.prod(forget_T) ** (layer.units[3].keeps / len(forget_T))  # at that mean rate, after so many tokens
    assert left == pytest.approx(math.exp(-1), rel=1e-4)


def test_features_are_what_they_are_called() -> None:
    found = features(tuple("To be,\nNo"))
    assert found["how far into the line"].tolist() == [1, 2, 3, 4, 5, 6, 0, 1, 2]
    assert found["how far into the word"].tolist() == [1, 2, 0, 1, 2, 3, 0, 1, 2]
    assert found["capital letters"].tolist() == [1, 0, 0, 0, 0, 0, 0, 1, 0]
    assert features((" cat", "s", " sat"))["how far into the word"].tolist() == [1, 2, 1]
    assert "how far into the line" not in features(tuple("one line, where all that drifts would follow its place"))
    a, b = np.random.default_rng(0).normal(size=(2, 50))
    assert correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert correlation(a, np.ones(50)) == 0.0


def test_what_happened_once_is_not_followed() -> None:
    assert set(features(tuple("What say you, my lord?"))) == {"how far into the word", "white space", "punctuation"}
    assert features(("a",)) == {}
    assert followed(np.ones(1), {}, 8) == ("", 0.0)


def test_units_that_are_noise_follow_something_in_at_most_one_text_of_twenty() -> None:
    """And of a long text half is enough, which noise never reaches."""
    random, follow = np.random.default_rng(3), features(tuple("What say you, my lord?\nI say, the King is here."))
    tokens = len(next(iter(follow.values())))
    named = [any(followed(unit_T, follow, 32)[0] for unit_T in random.normal(size=(32, tokens))) for _ in range(400)]
    assert sum(named) <= 30  # 20 are expected at most; 30 or more have a chance of two in a hundred
    assert least_correlation(tokens, 32 * len(follow)) > FOLLOWS == least_correlation(2000, 128 * 6)
    assert followed(follow["white space"], follow, 32) == ("white space", pytest.approx(1.0))


def test_the_command_shows_writes_json_and_refuses(runs: dict[str, Path], lmlab: Lmlab) -> None:
    out = done(lmlab("explain", "gates", runs["lstm"], SENTENCE, "--json"))
    assert set(json.loads(out)["layers"][1]["values"]) == {
        *("input gate i", "forget gate f", "candidate c̃", "output gate o", "state h", "cell c")
    }
    out = done(lmlab("explain", "gates", runs["gru"], SENTENCE))
    assert "update gate z" in out
    refused(lmlab("explain", "gates", runs["gpt"], SENTENCE), "run-without-gates")


def test_a_tanh_network_has_no_gates(tmp_path: Path) -> None:
    run = lmlab.train("rnn", SENTENCE * 40, out=tmp_path / "rnn", budget="1steps", settings={"width": 8})
    with pytest.raises(Mistake, match="kind rnn, which has no gates"):
        lmlab.explain_gates(run, SENTENCE)


def test_ends_of_lines_and_the_map_can_be_pointed_at_and_the_label_clears(
    tab: Any, runs: dict[str, Path], tmp_path: Path
) -> None:
    found = lmlab.explain_gates(
        runs["gru"], SENTENCE, html=tmp_path / "gates.html", command="lmlab explain gates <gru>"
    )
    tab.goto((tmp_path / "gates.html").as_uri())
    said = tab.locator(".said")
    said.filter(has_text="update gate z, unit").wait_for()  # it opens on a gate
    assert "Made by lmlab explain gates <gru>" in tab.locator("main").inner_text()
    assert "bits per byte" in tab.locator(".facts").inner_text()
    z_TH, end = found.layers[0].values["update gate z"], SENTENCE.index("\n")

    def shown() -> tuple[int, float]:
        said.filter(has_text=" after ").wait_for()
        text = said.inner_text()
        return int(text.partition("unit ")[2].partition(",")[0]) - 1, float(
            text.rpartition(" after")[0].rpartition(": ")[2]
        )

    tab.locator(".strip b").nth(end).hover(position={"x": 3, "y": 6})
    said.filter(has_text="after ⏎").wait_for()
    unit, value = shown()
    assert value == pytest.approx(z_TH[end, unit], abs=0.01)
    box = tab.locator(".strip").bounding_box()
    tab.mouse.move(box["x"] + box["width"] - 20, box["y"] + 15)  # past the end of the line
    tab.wait_for_function("!document.querySelector('.said').textContent.includes(' after ')")
    size = tab.locator("canvas.map").bounding_box()
    at = {"x": size["width"] * (end + 0.5) / len(SENTENCE), "y": size["height"] * 3.5 / z_TH.shape[1]}
    tab.locator("canvas.map").hover(position=at)
    unit, value = shown()
    assert tab.locator("select.unit option").nth(3).inner_text().startswith(f"unit {unit + 1},")
    assert value == pytest.approx(z_TH[end, unit], abs=0.01)
    assert tab.problems == []


def test_the_page_colours_the_text_by_the_unit_that_is_chosen(tab: Any, runs: dict[str, Path], tmp_path: Path) -> None:
    found = lmlab.explain_gates(runs["lstm"], SENTENCE * 3, html=tmp_path / "gates.html")
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.goto((tmp_path / "gates.html").as_uri())
    tab.locator("select.unit option").first.wait_for(state="attached")
    unit = found.layers[1].units[4]
    tab.locator("select.layer").select_option("1")
    names = tab.locator("select.unit option").all_inner_texts()
    place = next(i for i, name in enumerate(names) if name.startswith("unit 5,"))
    tab.locator("select.unit").select_option(str(place))
    tab.get_by_label("forget gate f").check()
    tab.locator(".strip b").nth(7).hover()
    value = found.layers[1].values["forget gate f"][7, 4]
    tab.locator(".said").filter(has_text="after ␣").wait_for()
    assert f"keeps {unit.keeps:,.1f} tokens" in tab.locator(".said").inner_text()
    shown = float(tab.locator(".said").inner_text().rpartition(" after")[0].rpartition(": ")[2])
    assert shown == pytest.approx(value, abs=0.01)
    tab.locator("canvas.map").focus()
    tab.keyboard.press("ArrowDown")
    assert tab.locator("select.unit").input_value() == str(min(place + 1, len(names) - 1))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    accessible(tab)
    assert tab.problems == []
