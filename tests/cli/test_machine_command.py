"""`lmlab machine`: what one pastes into a bug report, and the cache it speaks of."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused


def test_it_says_what_was_found_what_is_chosen_and_what_is_installed(lmlab: Lmlab) -> None:
    code, out, err = lmlab("machine")
    assert (code, err) == (0, "")
    for words in ("float32", "bf16", "GFLOP/s", "Chosen", "precision of products", "threads", "torch 2.", "Kept in"):
        assert words in out


def test_as_json_it_is_one_document(lmlab: Lmlab) -> None:
    code, out, _ = lmlab("machine", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["found"][-1]["rates"][0]["products"] > 0
    assert {choice["what"] for choice in found["choices"]} >= {"precision of products", "threads"}
    assert found["versions"]["torch"]


def test_what_is_kept_is_used_again_and_measured_anew_when_asked(lmlab: Lmlab) -> None:
    first = json.loads(lmlab("machine", "--json")[1])["found"]
    assert json.loads(lmlab("machine", "--json")[1])["found"] == first
    assert json.loads(lmlab("machine", "--again", "--json")[1])["found"] != first


def test_clear_deletes_what_is_kept_and_nothing_else(
    lmlab: Lmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("LMLAB_CACHE", str(cache))
    lmlab("machine", "--again")
    mine = cache / "somebody elses.txt"
    mine.write_text("keep this")
    assert list((cache / "machine").iterdir())
    out = done(lmlab("machine", "--clear"))
    assert out.startswith("Deleted ")
    assert [path.name for path in cache.iterdir()] == [mine.name]


def test_clear_leaves_the_only_copy_of_a_text_that_was_piped(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(small_text, "rb") as piped:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(piped))
        assert lmlab("train", "bag", "-", "--out", "run")[0] == 0
    out = done(lmlab("machine", "--clear"))
    assert "Left: 1 file" in out
    assert str(Path(os.environ["LMLAB_CACHE"]) / "piped") in out
    assert json.loads(lmlab("machine", "--clear", "--json")[1])["left"]["files"] == 1
    done(lmlab("eval", "run"))


def test_clearing_and_measuring_again_are_not_asked_for_at_once(lmlab: Lmlab) -> None:
    refused(lmlab("machine", "--clear", "--again"), "--clear", "--again")
