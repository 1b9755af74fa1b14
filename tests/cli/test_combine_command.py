"""`lmlab train autoencoder`, `lmlab eval` and `lmlab combine`."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Lmlab, done, refused


def test_from_a_table_of_pairs_to_a_parent_and_its_neighbours(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("".join(f"w{i} {i % 3} {i % 5} {i % 7}.5\n" for i in range(30)))
    rows = [f"w{i % 30},w{i * 7 % 30},{'up' if i % 2 else 'down'}" for i in range(60)]
    (tmp_path / "pairs.csv").write_text("first,second,label\n" + "\n".join(rows) + "\n")
    code, out, err = lmlab(
        "train", "autoencoder", tmp_path / "pairs.csv", "--set", f"vectors={tmp_path / 'v.txt'}", "--budget", "5steps",
        "--out", tmp_path / "run", "--device", "cpu",
    )  # fmt: skip
    assert code == 0, err
    assert "60 of 60 pairs" in err
    out = done(lmlab("eval", tmp_path / "run"))
    assert "linear map" in out
    out = done(lmlab("combine", tmp_path / "run", "w1", "w2", "--number", "2", "--json"))
    (found,) = json.loads(out)
    assert len(found["neighbours"]) == 2
    out = done(lmlab("combine", tmp_path / "run", "w1", "w2"))
    assert "near:" in out
    for arguments, words in (
        (["w1"], "two by two"),
        (["w1", "x2"], "no vector for 'x2'"),
        (["w1", "w2", "--out", "m.png"], ".svg"),
    ):
        refused(lmlab("combine", tmp_path / "run", *arguments), words)
