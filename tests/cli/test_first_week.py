"""What people run into in their first week: nothing is left out, ignored or written in silence."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.cli.options import given_texts
from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.config import Mistake, Note
from lmlab_derive.shared.plain import visible
from mistakes import mistake
from processes import THIS_CODE

SMALL = {"width": 8, "context": 2, "embedding_width": 4}


@pytest.fixture
def run_folder(lmlab: Lmlab, small_text: Path) -> Path:
    done(lmlab("train", "ngram", small_text, "--out", "good"))
    return Path("good")


@pytest.fixture
def mixed_folder(small_text: Path) -> Path:
    folder = small_text.parent / "mixed"
    (folder / "deep").mkdir(parents=True)
    small_text.rename(folder / "prose.txt")
    (folder / "deep" / "code.py").write_text("".join(f"def f{n}(x):\n    return x{n * n}\n" for n in range(200)))
    (folder / "empty.json").write_text("")
    return folder


def test_a_folder_says_which_files_it_passes_over_and_how_they_would_be_read(lmlab: Lmlab, mixed_folder: Path) -> None:
    code, _, err = lmlab("train", "bag", "mixed", "--out", "run")
    assert code == 0
    assert "code.py was not read (5,944 by" in err
    assert "'mixed/**/*.py'" in err
    assert "note" not in lmlab("eval", "run")[2]  # it was said
    with pytest.warns(Note, match=r"code\.py was not read"):
        lab.read(mixed_folder)


@pytest.mark.parametrize("usual", ["80,10,10", "90,10,0", "0.7,0.2,0.1", "1,0,0"])
def test_usual_shares_are_taken_without_a_word(lmlab: Lmlab, small_text: Path, usual: str) -> None:
    assert "adds up" not in lmlab("data", "show", small_text, "--split", usual)[2]


def test_shares_of_neither_100_nor_1_are_taken_as_ratios_and_said_once(lmlab: Lmlab, small_text: Path) -> None:
    said = "lmlab: note: --split 90,9,9 adds up to 108, which makes training 83.3%, validation 8.3%, test 8.3%\n"
    for command in (["train", "bag", small_text, "--split-by", "tail"], ["train", "--resume"]):
        code, _, err = lmlab(*command, "--split", "90,9,9", "--out", "run")
        assert (code, err.count("adds up")) == (0, 1)
        assert said in err
    assert lab.load("run").corpus.train.bytes == small_text.stat().st_size * 90 // 108
    assert "adds up" not in lmlab("eval", "run")[2]


def test_a_pattern_names_files_of_any_kind(lmlab: Lmlab, mixed_folder: Path) -> None:
    out = done(lmlab("train", "bag", "mixed/**/*.py"))
    assert "runs/bag-mixed" in out
    assert lab.load("runs/bag-mixed").corpus.name == "mixed"
    assert lmlab("eval", "runs/bag-mixed")[0] == 0
    assert lmlab("train", "bag", "mixed/*.tex")[2] == "lmlab: no file that is not empty matches mixed/*.tex\n"


def test_a_folder_of_other_files_alone_is_refused_with_the_pattern_for_them(lmlab: Lmlab, mixed_folder: Path) -> None:
    refused(lmlab("train", "bag", "mixed/deep"), "'mixed/deep/**/*.py'")


@pytest.mark.parametrize("part", ["test", "valid"])
def test_a_part_beside_another_text_is_refused(lmlab: Lmlab, run_folder: Path, small_text: Path, part: str) -> None:
    refused(lmlab("eval", run_folder, small_text, "--part", part), f"--part {part}")


def script(*arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "lmlab", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=os.environ | THIS_CODE | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_dash_is_standard_output(lmlab: Lmlab, run_folder: Path) -> None:
    Path("note.txt").write_text("the cat sat")
    _, arpa, said = lmlab("export", run_folder, "-o", "-")
    assert arpa.startswith("\\data\\")
    assert "n-grams:" in said
    assert lmlab("compress", "note.txt", "--model", run_folder, "-o", "note.lm")[0] == 0
    assert done(lmlab("decompress", "note.lm", "--model", run_folder, "-o", "-")) == "the cat sat"
    assert not Path("-").exists()
    refused(lmlab("export", run_folder, "-o", "-", "--json"), "leave --json out")
    with pytest.raises(Mistake, match="name a file"):
        lab.export(run_folder, out="-")


def test_a_dash_is_no_name_for_what_cannot_go_to_standard_output(
    lmlab: Lmlab, small_text: Path, tmp_path: Path
) -> None:
    refused(lmlab("train", "bag", small_text, "--out", "-"), "name a new folder")
    refused(lmlab("explain", "positions", "--html", "-"), "name a file")
    assert not (tmp_path / "-").exists()


def test_lines_of_standard_input_are_text_or_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, found in ((b"not bad\n\ngood\n", ["not bad", "good"]), ("für\n".encode(), ["für"])):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given), encoding="ascii"))
        assert given_texts(["-"], "give texts") == found
    for given in (b"\xff\xfe\n", b"\n \n"):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given)))
        with pytest.raises(Mistake):
            given_texts(["-"], "give texts")
    assert given_texts(["-", "a"], "give texts") == ["-", "a"]


def test_a_reader_that_leaves_is_no_mistake(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "sheet.derive").write_text("given x: n\nclaim norm(x)**2 == x @ x\n")
    for arguments in (["check", tmp_path / "sheet.derive", "--json"], ["data"]):
        process = script(*arguments)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(), said) == (141, b"")
        process.stderr.close()


def test_lmlab_alone_is_answered_with_help(lmlab: Lmlab) -> None:
    code, out, err = lmlab()
    assert (code, err) == (0, "")
    assert "compare" in out


def test_a_model_that_counts_is_swept_once_and_not_called_lucky(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Processes, "run", Here.run)
    code, out, err = lmlab("sweep", "ngram", small_text, "--over", "order=1,2", "--out", "s", "--seeds", 3)
    assert code == 0, err
    assert err.count("bits per byte") == 2
    assert "± 0.000" not in out
    assert "real" not in out
    assert "ngram counts" in out


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert visible("a\x1b[31m\rb\x9b\n\tc\x7f") == "a\\x1b[31m\\x0db\\x9b\n\tc\\x7f"


class Terminal:
    """Standard output, said to be a terminal."""

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        return True


def test_generated_control_characters_are_shown_on_a_terminal_and_kept_in_a_file(
    lmlab: Lmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "escape.txt").write_text("\x1b[31m" * 500)
    assert lmlab("train", "ngram", "escape.txt", "--out", "red")[0] == 0
    assert "\x1b" in lmlab("generate", "red", "--tokens", 40)[1]
    monkeypatch.setattr("sys.stdout", Terminal(sys.stdout))
    for more in ([], ["--samples", 2]):
        out = lmlab("generate", "red", "--tokens", 40, *more)[1]
        assert "\x1b" not in out
        assert "\\x1b" in out


@pytest.mark.parametrize(
    ("split", "command"), [("80,10,10", "eval run"), ("90,10,0", "eval run --part valid"), ("100,0,0", "generate run")]
)
def test_the_command_that_is_suggested_next_works(lmlab: Lmlab, small_text: Path, split: str, command: str) -> None:
    _, out, _ = lmlab("train", "bag", small_text, "--split", split, "--out", "run")
    _, _, suggested = out.splitlines()[-1].partition("Next: lmlab ")
    assert suggested.startswith(command)
    assert lmlab(*shlex.split(suggested))[0] == 0


def test_a_comparison_in_the_place_of_a_run_names_the_runs_inside(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("compare", small_text, "--models", "bag,uniform", "--budget", "2s", "--out", "c")[0] == 0
    code, _, err = lmlab("generate", "c")
    assert code == 2
    assert ": c/models/bag-char, " in err
    assert "c/models/uniform-char" in err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budget": [5]}, "number of seconds or text"),
        ({"settings": {"layers": 2.5}}, "setting layers is a whole"),
        ({"settings": {"layers": "2"}}, "setting layers is a whole"),
        ({"settings": {"dropout": "much"}}, "setting dropout is a number"),
        ({"learning": {"learning_rate": [1]}}, "setting learning_rate is"),
    ],
)
def test_a_slip_in_python_is_a_mistake_that_says_what_would_be_right(
    small_text: Path, tmp_path: Path, wrong: dict[str, object], said: str
) -> None:
    with mistake(said):
        lab.train("gpt", small_text, out=tmp_path / "run", **wrong)


def test_a_class_in_the_place_of_a_models_name_is_told_its_name(small_text: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="test_first_week:Terminal"):
        lab.train(Terminal, small_text, out=tmp_path / "run")  # type: ignore[arg-type]


def test_a_measurement_is_a_few_lines_unless_asked_for_more(lmlab: Lmlab, run_folder: Path) -> None:
    _, out, _ = lmlab("eval", run_folder)
    assert "certified: all 12 checks passed (--verbose shows them)" in out
    assert "passed  " not in out
    assert lmlab("eval", run_folder, "--verbose")[1].count("passed  ") == 12


def test_a_note_on_what_nobody_can_mend_is_for_whoever_asks_for_more(lmlab: Lmlab) -> None:
    Path("again.txt").write_text("the cat sat on the mat and the dog sat on the log\n" * 120)
    assert lmlab("train", "ngram", "again.txt", "--out", "again")[0] == 0
    assert "discounts" not in lmlab("eval", "again")[1]
    assert lmlab("eval", "again", "--verbose")[1].count("discounts") == 1
    assert any("discounts" in note for note in json.loads(lmlab("eval", "again", "--json")[1])["notes"])


def test_a_measurement_says_what_its_interval_is_for(lmlab: Lmlab) -> None:
    luck = random.Random(0)
    Path("text.txt").write_text("".join(luck.choices("abcdefghijklmnop", k=40_000)))
    for way, said in (("blocks", "for the whole file, read in blocks"), ("tail", "for the text around this stretch")):
        assert lmlab("train", "ngram", "text.txt", "--split-by", way, "--out", way)[0] == 0
        assert f"that interval is {said}" in lmlab("eval", way)[1]


def test_more_than_eight_bits_per_byte_are_explained_where_they_are_printed(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "uniform", small_text, "--out", "run")[0] == 0
    _, out, _ = lmlab("eval", "run")
    assert "256 bytes in store for characters never seen" in out
    assert "perplexity per word: above a million" in out


def test_more_than_eight_bits_are_not_blamed_on_spare_bytes_where_the_text_is_another(
    lmlab: Lmlab, run_folder: Path
) -> None:
    Path("other.txt").write_text("ÄÖÜ ÑÇÉ\n" * 50, encoding="utf-8")
    _, out, _ = lmlab("eval", run_folder, "other.txt")
    assert "unlike what the model learned from" in out
    assert "in store" not in out


def test_a_text_in_another_script_is_said_to_have_come_as_bytes(lmlab: Lmlab, run_folder: Path) -> None:
    Path("other.txt").write_text("the ÄÖÜ\n" * 50, encoding="utf-8")
    said = ", 0 unknown, 300 (54.55%) single bytes of characters without a token\n"
    assert said in lmlab("eval", run_folder, "other.txt")[1]
    Path("plain.txt").write_text("the\n" * 50)
    assert ", 0 unknown\n" in lmlab("eval", run_folder, "plain.txt")[1]


def test_the_json_of_a_comparison_is_short(lmlab: Lmlab, small_text: Path) -> None:
    _, out, _ = lmlab("compare", small_text, "--models", "bag,ngram", "--budget", "2s", "--out", "c", "--json")
    assert len(out) < 30_000
    assert len(json.loads(Path("c/comparison.json").read_text())["entries"][0]["excerpt"]) > 10


def test_a_text_in_the_place_of_what_to_do_with_it_is_understood(lmlab: Lmlab, small_text: Path) -> None:
    assert f"did you mean data show {small_text}?" in lmlab("data", small_text)[2]
    assert "did you mean data get sotu?" in lmlab("data", "sotu")[2]
    assert "did you mean" not in lmlab("data", "nothing")[2]


def test_epochs_and_thousands_are_understood_and_go_on(lmlab: Lmlab, small_text: Path) -> None:
    small = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    command = ["train", "feedforward", small_text, "--budget", "2epochs", "--out", "run", *small]
    assert lmlab(*command)[0] == 0
    run = lab.load("run")
    assert run.record.training.budget == "2epochs"
    same = lab.train(
        "feedforward", small_text, out="same", budget=f"{2 * run.corpus.train.chars}tokens", settings=SMALL
    )
    assert run.record.result.tokens == same.record.result.tokens
    assert lmlab(*command, "--resume")[0] == 0
    small_text.write_text(" ".join(f"word{n}" for n in range(3000)))
    done(lmlab("train", "bag", small_text, "--tokenizer", "words:1k", "--out", "bag"))
    assert lab.load("bag").record.inputs.tokenizer == "words:1000"
