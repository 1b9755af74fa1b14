"""`lmlab compare` as a user meets it: the table, the page, --json, several seeds, and the same folder again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmlab as lab
from command_line import done, refused
from lmlab.models.bag import Bag
from some_text import some_lines

Lmlab = Callable[..., tuple[int, str, str]]
COUNTED = ["--models", "uniform,bag,ngram", "--budget", "2s", "--out", "out"]
SMALL = ["--set", "feedforward.context=2", "--set", "feedforward.width=8", "--set", "feedforward.embedding_width=4"]


def test_the_table_is_plain_text_and_the_page_and_its_picture_are_written(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("compare", small_text, *COUNTED)
    assert code == 0, err
    assert "\x1b" not in out
    assert out.index(" ngram ") < out.index(" bag ") < out.index(" uniform ")
    assert "Report: " in out
    assert "bits per byte" in err  # progress, a line a model
    page = Path("out/report.html").read_text()
    assert "Which model predicts small best?" in page
    assert Path("out/ranking.svg").read_text().startswith("<svg")


def test_json_is_one_document_and_nothing_else(lmlab: Lmlab, small_text: Path) -> None:
    small_text.write_text(some_lines(900))  # long enough to tell them apart
    code, out, err = lmlab("compare", small_text, *COUNTED, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [e["rank"] for e in document["entries"]] == [1, 2, 3]
    assert Path(document["report"]).exists()
    assert document["luck"]["deviations"] == {}  # nothing here was learned
    saved = json.loads(Path(document["details"]).read_text())
    assert all(entry.pop("excerpt") for entry in saved["entries"])  # thousands of tokens, in that file alone
    assert saved == {key: value for key, value in document.items() if key not in ("report", "details")}


def test_the_same_folder_again_measures_again_and_trains_only_what_is_new(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = json.loads(lmlab("compare", small_text, *COUNTED, "--json")[1])
    monkeypatch.setattr(Bag, "fit", lambda *_: pytest.fail("trained again"))
    more = ["--models", "uniform,bag,ngram,feedforward", *COUNTED[2:], *SMALL]
    second = json.loads(lmlab("compare", small_text, *more, "--json")[1])
    reused = {e["model"]: e["reused"] for e in second["entries"]}
    assert reused == {"uniform": True, "bag": True, "ngram": True, "feedforward": False}
    before = {e["model"]: e["result"]["bits_per_byte"] for e in first["entries"]}
    after = {e["model"]: e["result"]["bits_per_byte"] for e in second["entries"]}
    assert before.items() <= after.items()


@pytest.mark.slow
def test_a_folder_with_a_model_of_other_settings_is_refused(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("compare", small_text, *COUNTED, "--set", "ngram.order=3")[0] == 0
    assert lmlab("compare", small_text, *COUNTED, "--set", "ngram.order=3")[0] == 0
    code, out, err = lmlab("compare", small_text, *COUNTED, "--set", "ngram.order=4")
    assert (code, out) == (2, "")
    assert "order=3" in err
    assert "--out" in err
    assert err.count("\n") == 1


def test_a_setting_that_is_left_open_is_the_same_the_next_time(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"out": tmp_path / "out", "budget": "4s", "models": ["uniform", "ngram"]}
    for left_open in ("auto", None):
        lab.compare(small_text, settings={"ngram": {"order": left_open}}, **asked)
    models = ("--models", "uniform,ngram", "--budget", "4s", "--out", tmp_path / "out")
    assert lmlab("compare", small_text, *models, "--set", "ngram.order=auto")[0] == 0
    with pytest.raises(lab.Mistake, match="that was trained with order="):
        lab.compare(small_text, settings={"ngram": {"order": 2}}, **asked)


def test_a_model_of_settings_that_are_not_asked_for_any_more_is_refused(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("compare", small_text, *COUNTED, "--set", "ngram.order=3")[0] == 0
    code, out, err = lmlab("compare", small_text, *COUNTED)
    assert (code, out) == (2, "")
    assert "was trained with order=3" in err


@pytest.mark.slow
def test_settings_that_come_to_what_was_chosen_before_are_no_others(lmlab: Lmlab, small_text: Path) -> None:
    found = json.loads(lmlab("compare", small_text, *COUNTED, "--json")[1])
    chosen = {entry["model"]: entry["result"]["model"]["config"] for entry in found["entries"]}
    code, _, err = lmlab("compare", small_text, *COUNTED, "--set", f"ngram.order={chosen['ngram']['order']}")
    assert code == 0, err
    code, _, err = lmlab("compare", small_text, *COUNTED)
    assert code == 0, err


@pytest.mark.slow
def test_several_seeds_are_averaged_and_their_spread_is_measured(lmlab: Lmlab, small_text: Path) -> None:
    command = ["compare", small_text, "--models", "bag,feedforward", "--budget", "3s", "--out", "out", *SMALL]
    code, out, err = lmlab(*command, "--seeds", 2, "--json")
    assert code == 0, err
    document = json.loads(out)
    entries = {e["model"]: e for e in document["entries"]}
    assert [s["seed"] for s in entries["bag"]["seeds"]] == [0]  # counted: the same with every seed
    bits = [s["bits_per_byte"] for s in entries["feedforward"]["seeds"]]
    assert len(set(bits)) == 2
    assert entries["feedforward"]["result"]["bits_per_byte"] == pytest.approx(sum(bits) / 2)
    assert document["luck"]["measured"]
    assert document["luck"]["deviations"]["feedforward"] == pytest.approx(abs(bits[0] - bits[1]) / 2**0.5)
    assert "measured here" in Path("out/report.html").read_text()
    code, out, _ = lmlab(*command)  # one of the two seeds is enough now
    assert code == 0
    assert "--seeds 3 measures it" in " ".join(out.split())
    assert "was trained once" in Path("out/report.html").read_text()


@pytest.mark.slow  # its twin, by the other door, is fast enough
def test_each_and_shares_say_how_long_models_train(lmlab: Lmlab, small_text: Path) -> None:
    small = [*SMALL, "--set", "gru.width=8", "--set", "bigram.width=8"]
    models = ["--models", "bag,bigram,feedforward,gru", "--out", "out"]
    shares = ["--shares", "gru=2,bigram=1.5", "--shares", "feedforward=1"]
    code, out, err = lmlab("compare", small_text, *models, "--each", "1s", *shares, *small, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["shares"] == {"gru": 2.0, "bigram": 1.5, "feedforward": 1.0}
    asked = {
        folder.name.partition("-")[0]: json.loads((folder / "run.json").read_text())["training"]["budget"]
        for folder in Path("out/models").iterdir()
    }
    assert {name: asked[name] for name in ("bigram", "feedforward", "gru")} == {
        "bigram": "1.5s",
        "feedforward": "1s",
        "gru": "2s",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--shares", "bagg=2"], "bag"),
        (["--shares", "bag=2"], "takes what it needs"),
        (["--shares", "gpt=2"], "not among"),
        (["--shares", "bag"], "such as gpt=3"),
        (["--shares", "bag=two"], "such as gpt=3"),
        (["--each", "10s"], "leave one of them out"),
    ],
)
def test_a_share_or_a_time_that_cannot_be_is_a_mistake_in_one_line(
    lmlab: Lmlab, small_text: Path, given: list[str], said: str
) -> None:
    code, out, err = lmlab("compare", small_text, *COUNTED, *given)
    assert (code, out) == (2, "")
    assert said in err
    assert given[0] in err or "bagg" in err
    assert err.count("\n") == 1


def test_the_table_shows_letters_and_says_what_was_measured(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("compare", small_text, *COUNTED)
    assert code == 0, err
    ranking = json.loads(Path("out/comparison.json").read_text())["ranking"]
    rows = {name: next(line for line in out.splitlines() if f" {name} " in line) for name in ranking["models"]}
    for name, standing in ranking["models"].items():
        assert standing["letters"] in rows[name].split()
    said = " ".join(out.split())
    assert "All of the test part was measured" in said
    assert "share a letter exactly when they cannot be told apart" in said


def test_no_seeds_at_all_is_a_mistake(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("compare", small_text, *COUNTED, "--seeds", 0)
    assert (code, out) == (2, "")
    assert "from 1 to 1000" in err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("gpt.layers=-1", "setting-below-one"),
        ("ngram.order=0", "ngram-order-out-of-range"),
    ],
)
def test_a_setting_that_no_model_can_have_is_refused_before_anything_is_trained(
    lmlab: Lmlab, small_text: Path, setting: str, said: str
) -> None:
    command = ("compare", small_text, "--models", "ngram,gpt", "--set", setting, "--budget", "4s", "--out", "out")
    refused(lmlab(*command), said)
    assert not Path("out").exists()


def test_a_comparison_in_which_every_model_fails_says_so(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Bag, "fit", crash)
    code, out, err = lmlab("compare", small_text, "--models", "bag", "--budget", "2s", "--out", "out")
    assert code == 1
    assert "every model failed" in err
    assert "planted" in out
    assert Path("out/report.html").exists()


def test_a_comparison_in_which_one_model_fails_ends_well(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Bag, "fit", crash)
    code, out, err = lmlab("compare", small_text, "--models", "uniform,bag", "--budget", "2s", "--out", "out")
    assert code == 0
    assert "planted" in out
    assert "every model failed" not in err


def test_a_report_says_in_whole_sentences_that_its_parts_share_nothing(lmlab: Lmlab) -> None:
    Path("luck.txt").write_text("".join(random.Random(0).choices("abcdefgh ", k=4000)))
    done(lmlab("compare", "luck.txt", "--models", "uniform", "--budget", "2s", "--out", "luck"))
    assert ">The test part shares no 50 bytes in a row with the training part.<" in Path("luck/report.html").read_text()


def test_a_model_that_fails_a_check_stands_below_the_ranking_with_the_reason_and_ends_in_exit_code_1(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Bag.score
    monkeypatch.setattr(Bag, "score", lambda self, tokens: honest(self, tokens) * 0.5)
    code, out, err = lmlab("compare", small_text, "--models", "uniform,bag,ngram", "--budget", "4s", "--out", "out")
    assert code == 1
    assert "not ranked: bag" in err
    assert out.index("uniform") < out.index("bag (")
    assert "not ranked: its check score is probability failed (" in out


def test_the_most_important_remarks_come_after_the_ranking_and_the_others_on_request(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.cli.show.comparison.remarks", lambda _: [f"remark {n}" for n in range(9)])
    asked = ["compare", small_text, "--models", "uniform,bag", "--budget", "2s", "--out", "out"]
    _, out, _ = lmlab(*asked)
    assert [n for n in range(9) if f"remark {n}\n" in out] == list(range(5))
    assert out.index("uniform") < out.index("remark 0")
    assert "--verbose shows them" in out
    _, out, _ = lmlab(*asked, "--verbose")
    assert [n for n in range(9) if f"remark {n}\n" in out] == list(range(9))
    assert "--verbose" not in out


def test_a_test_part_that_can_tell_nothing_is_refused(lmlab: Lmlab) -> None:
    Path("tiny.txt").write_text("To be or not to be, that is the question, whether it is nobler in mind")
    refused(lmlab("compare", "tiny.txt", "--budget", "20s", "--out", "out"), "7 bytes", "--split 60,10,30")
    assert not Path("out").exists()
