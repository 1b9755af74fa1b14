"""What an impatient or hostile user tries: one line that says what would be right, and nothing lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, Result, done, refused
from lmlab.cli.show.comparison import LiveTable
from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.config import Mistake, texts_of
from lmlab.disk import files, locks
from lmlab.inside.passage import passage
from lmlab.learn.run_advice import require_trained, weights_warning
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake


@pytest.fixture
def piped() -> Iterator[Callable[[bytes], str]]:
    """Names of pipes with this in them, as a shell gives for `<(…)`."""
    ends = []

    def name(content: bytes) -> str:
        reading, writing = os.pipe()
        ends.append(reading)
        os.write(writing, content)  # little enough to fit into the pipe
        os.close(writing)
        return f"/dev/fd/{reading}"

    yield name
    for end in ends:
        os.close(end)


def test_vectors_are_never_saved_over_a_file_unless_forced(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("king 1 2\nqueen 2 1\nman 1 0\n")
    (tmp_path / "mine.txt").write_text("a text of mine")
    refused(lmlab("vectors", "v.txt", "save", "--out", "mine.txt"), "mine.txt exists", "--force")
    assert (tmp_path / "mine.txt").read_text() == "a text of mine"
    done(lmlab("vectors", "v.txt", "save", "--out", "mine.txt", "--force"))
    (tmp_path / "folder").mkdir()
    refused(lmlab("vectors", "v.txt", "save", "--out", "folder"), "folder is a folder", "name a file")


def test_a_size_of_bpe_that_nobody_asked_for_shrinks_with_the_text() -> None:
    texts = ["the cat sat on the mat and the rat sat on the cat\n" * 3]
    assert train_tokenizer("bpe:8000", texts, at_most=True).vocab_size in range(257, 400)
    assert train_tokenizer("bpe:8000", ["q"], at_most=True).spec == "byte"
    with pytest.raises(Mistake, match="larger than the text allows"):
        train_tokenizer("bpe:8000", texts)


def test_a_disk_that_fills_while_weights_are_written_is_no_bug_of_ours(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lmlab.learn.tensor_file._pieces", full)
    refused(lmlab("train", "bag", small_text, "--out", "run"), "model.safetensors", "No space left")
    assert not [path for path in Path("run").rglob("*") if "model.safetensors" in path.name], "nothing is left of it"


@pytest.mark.parametrize("model", ["glove", "autoencoder"])
def test_a_text_without_a_word_has_no_pairs_of_words(lmlab: Lmlab, tmp_path: Path, model: str) -> None:
    (tmp_path / "spaces.txt").write_text(" " * 5000)
    code, out, err = lmlab("train", model, "spaces.txt", "--budget", "5steps", "--out", "run")
    assert (code, out) == (2, ""), err
    assert err.splitlines()[-1].startswith("lmlab: spaces")


def test_a_table_of_a_header_alone_and_one_column_twice(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "header.tsv").write_text("text\tlabel\n")
    refused(lmlab("train", "dan", "header.tsv", "--out", "run"), "no examples")
    (tmp_path / "table.tsv").write_text("text\tlabel\ngood\tyes\nbad\tno\n")
    refused(lmlab("train", "dan", "table.tsv", "--columns", "text,text", "--out", "run"), "two")


def test_one_process_at_a_time_trains_in_a_run(small_text: Path, tmp_path: Path) -> None:
    settings = {"width": 8, "embedding_width": 8, "context": 2}
    run = lab.train("feedforward", small_text, out=tmp_path / "run", budget="2steps", settings=settings)
    with open(run.folder / locks.LOCK, "a+b") as other:
        assert locks._lock(other)  # as another process would take it
        with pytest.raises(Mistake, match="another process trains in"):
            lab.resume(run, budget="+2steps")
    assert lab.resume(run, budget="+2steps").record.result.steps == 4


def test_what_cannot_be_gone_on_with_or_begun_with_says_what_can(
    lmlab: Lmlab, small_text: Path, tmp_path: Path
) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "counted")[0] == 0
    code, _, err = lmlab("train", "--resume", "--out", "counted")
    assert code == 0
    assert "--budget +10m" not in err  # which would be refused
    (tmp_path / "table.tsv").write_text("text\tlabel\ngood\tyes\nbad\tno\n")
    refused(
        lmlab("train", "classifier", "table.tsv", "--from", "counted"),
        "from-other-model",
    )
    (tmp_path / "folder").mkdir()
    refused(lmlab("train", "--config", "folder"), "folder is a folder", "TOML")
    (tmp_path / "noise.toml").write_bytes(bytes(range(128, 256)))
    refused(lmlab("train", "--config", "noise.toml"), "UTF-8")


def test_a_file_that_cannot_be_written_is_called_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(temporary: Path, path: Path) -> None:
        raise OSError(30, "Read-only file system", str(temporary))

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="Read-only") as raised:
        files.write_atomically(tmp_path / "mine.txt", b"")
    assert raised.value.filename == str(tmp_path / "mine.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("run", [None, 3, ["a"], b"run", {}, ""])
def test_what_is_no_run_is_a_mistake_in_python_too(run: object) -> None:
    for verb in (lab.generate, lab.score, lab.fill, lab.classify, lab.translate):
        with pytest.raises(lab.Mistake, match="a run is"):
            verb(run, "a")  # type: ignore[operator]
    for bare in (lab.evaluate, lab.resume):
        with pytest.raises(lab.Mistake, match="a run is"):
            bare(run)  # type: ignore[operator]


def test_a_run_named_where_a_text_is_wanted_or_named_twice(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "one")[0] == 0
    refused(lmlab("mix", "one", "one", "--out", "mixed"), "named twice")
    with mistake("text-is-a-run"):
        passage("one", lab.load("one"))


def test_half_a_character_on_the_command_line_is_one_line(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "one")[0] == 0
    refused(lmlab("explain", "one", "\udce2 king"), "UTF-8")


def test_a_home_that_cannot_be_written_costs_the_cache_its_usual_place_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LMLAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert files.cache_folder() == tmp_path / "cache" / "lmlab"
    monkeypatch.setattr("os.access", lambda *_: False)
    assert files.cache_folder().parent == Path(tempfile.gettempdir())


def test_pages_pictures_and_numbers_replace_nothing_of_another_kind(lmlab: Lmlab, small_text: Path) -> None:
    before = small_text.read_bytes()
    settings = ["--set", "width=8", "--set", "embedding_width=8", "--set", "context=2", "--budget", "2steps"]
    assert lmlab("train", "feedforward", small_text, *settings, "--out", "one")[0] == 0
    refused(lmlab("explain", "one", "king", "--html", small_text), "small.txt exists", ".html")
    refused(lmlab("curves", "one", "--csv", small_text), "small.txt exists", ".csv")
    assert small_text.read_bytes() == before
    for _ in range(2):  # over its own kind it may
        assert lmlab("explain", "one", "king", "--html", "page.html")[0] == 0
    refused(lmlab("train", "feedforward", small_text, "--out", small_text / "inside"), "is a file", "new folder")
    refused(lmlab("train", "feedforward", small_text, "--set", "width=", "--out", "two"), "no value", "auto")


@pytest.mark.parametrize("text", [None, 3, b"a", [None], [], {}])
def test_what_is_no_text_is_a_mistake_in_python_too(text: object) -> None:
    with mistake("no-list-of-texts"):
        texts_of(text)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["plan", "--loss", "nan", "--device", "A100"], "--loss"),
        (["plan", "--parameters", "7B", "--tokens", "1T", "--device", "A100", "--length", "0"], "--length"),
        (["count", "gpt", "--vocab", "0"], "--vocab is"),
        (["count", "gpt", "--vocab", "1000000000000000000"], "too-many-parameters"),
    ],
)
def test_sizes_that_cannot_be_name_the_one_that_is_wrong(lmlab: Lmlab, arguments: list[str], word: str) -> None:
    refused(lmlab(*arguments), word)


DIVERGING = ["--set", "width=8", "--set", "embedding_width=8", "--set", "context=2", "--learn", "learning_rate=1e30"]


def test_a_run_that_learned_nothing_is_one_line_and_no_success(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("train", "feedforward", small_text, *DIVERGING, "--budget", "20steps", "--out", "run")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "(try a learning rate below" in err
    run = lab.load("run")
    assert (run.status, run.learned_nothing) == ("diverged", True)
    assert all(line["valid_bits_per_byte"] == line["valid_bits_per_byte"] for line in run.metrics)  # not nan
    code, _, err = lmlab("generate", "run", "--tokens", 5)
    assert code == 0
    assert "run has learned nothing" in err
    code, out, _ = lmlab("train", "feedforward", small_text, *DIVERGING, "--budget", "9steps", "--out", "two", "--json")
    assert code == 2
    assert json.loads(out)["result"]["status"] == "diverged"


def test_a_budget_that_ends_before_the_first_step_is_no_success(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab(
        "train", "feedforward", small_text, *DIVERGING[:-2], "--budget", "0.0000001s", "--out", "run"
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "(give it a longer one)" in err
    run = lab.load("run")
    assert (run.status, run.learned_nothing, run.record.result.steps) == ("untrained", True, 0)
    assert "untrained: the budget ended before the first step" in Path("run/page.html").read_text()
    assert "note: run has learned nothing: the budget ended" in lmlab("eval", "run")[1]
    with pytest.raises(lab.Mistake, match="untrained: the budget ended"):
        require_trained(run)
    assert lmlab("train", "--resume", "--out", "run", "--budget", "+3steps")[0] == 0
    assert (lab.load("run").status, lab.load("run").learned_nothing) == ("finished", False)
    code, _, err = lmlab("train", "--resume", "--out", "run", "--budget", "+0.0000001s")
    assert code == 0  # of weights that were trained before
    assert "ended before the first step" in err


def test_weights_that_were_good_before_it_diverged_are_kept_and_said(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "feedforward", small_text, *DIVERGING[:-2], "--budget", "20steps", "--out", "one")[0] == 0
    code, out, err = lmlab("train", "--from", "one", small_text, *DIVERGING[-2:], "--budget", "20steps", "--out", "two")
    assert code == 0, err
    assert "of step 0, are kept" in err
    assert "feedforward: diverged" in out
    assert not lab.load("two").learned_nothing
    said = "two diverged before its time was up: the loss went to"
    assert f"note: {said}" in lmlab("eval", "two")[1]  # also who looks at it another day
    assert said in lmlab("generate", "two", "--tokens", 5)[2]
    assert said in lab.load("two")._repr_html_()
    assert weights_warning(lab.load("one")) == ""


def test_event_files_need_a_folder_and_write_nothing_over_a_file(
    lmlab: Lmlab, small_text: Path, tmp_path: Path
) -> None:
    assert lmlab("train", "feedforward", small_text, *DIVERGING[:-2], "--budget", "2steps", "--out", "run")[0] == 0
    for place in (small_text, small_text / "inside"):
        refused(lmlab("curves", "run", "--tensorboard", place), "--tensorboard is a folder", "small.txt is a file")
    assert not (tmp_path / "curves.html").exists()


def test_the_wrong_kind_of_an_unfinished_run_is_one_line(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = contextmanager(lambda: iter([lambda: True]))
    with monkeypatch.context() as patched:
        patched.setattr("lmlab.learn.loop.interruptible", stopped)
        assert (
            lmlab("train", "feedforward", small_text, *DIVERGING[:-2], "--budget", "9steps", "--out", "run")[0] == 130
        )
    refused(lmlab("fill", "run", "the [MASK]"), "fills no blanks")
    refused(lmlab("classify", "run", "a text"), "feedforward")
    assert "run is unfinished" in lmlab("score", "run", "a text")[2]


@pytest.mark.parametrize(
    ("redirection", "words"),
    [(">&-", "standard output is closed"), ("> /dev/full", "the output cannot be written (No space left")],
)
def test_standard_output_that_takes_nothing_is_one_line(redirection: str, words: str) -> None:
    if redirection.endswith("full") and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = f"{sys.executable} -m lmlab data --json {redirection}"
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert words in found.stderr


def test_closed_errors_and_input_do_not_reach_standard_output() -> None:
    command = f"{sys.executable} -m lmlab count nothing 2>&- <&-"
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")


def test_a_file_whose_name_has_two_lines_is_a_file(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    (tmp_path / "two\nlines.txt").write_bytes(small_text.read_bytes())
    assert lmlab("train", "bag", "two\nlines.txt", "--out", "run")[0] == 0
    assert lab.load("run").corpus.train.sha256 == lab.train("bag", small_text, out="other").corpus.train.sha256
    assert lab.train("bag", "a text\nitself\n" * 9, out="third").corpus.name == "text"


@pytest.mark.parametrize("file", ["metrics.jsonl", "samples.jsonl"])
def test_a_run_that_was_copied_while_a_line_was_written_opens_and_goes_on(
    lmlab: Lmlab, small_text: Path, file: str
) -> None:
    assert lmlab("train", "feedforward", small_text, *DIVERGING[:-2], "--budget", "2steps", "--out", "run")[0] == 0
    with open(Path("run") / file, "a", encoding="utf-8") as grows:
        grows.write('{"step": 9, "te')
    assert lmlab("curves", "run")[0] == 0
    assert lmlab("train", "--resume", "--out", "run", "--budget", "+2steps")[0] == 0
    (Path("run") / "metrics.jsonl").write_text("{\n{}\n")
    refused(lmlab("curves", "run"), "metrics.jsonl is damaged")


def test_a_folder_that_looks_like_an_option_is_suggested_so_that_it_works(lmlab: Lmlab, small_text: Path) -> None:
    _, out, _ = lmlab("train", "bag", small_text, "--out", "-x")
    suggested = out.partition("Next: lmlab ")[2].split()
    assert suggested == ["eval", "./-x"]
    assert lmlab(*suggested)[0] == 0


def test_what_is_missing_or_empty_is_named(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    for place in ("nowhere", tmp_path):
        refused(lmlab("generate", "run", "--prompt-file", place), "there is no file", "standard input")
    refused(lmlab("compare", small_text, "--models", "", "--budget", "9s"), "--models names no model", "gpt")
    (tmp_path / "other.txt").write_text("quite another alphabet: 0123456789 " * 30)
    assert lmlab("train", "bag", "other.txt", "--out", "other")[0] == 0
    refused(lmlab("mix", "run", "other", "--out", "mixed"), "both char, of different texts")


def test_a_byte_order_mark_is_no_token_to_look_at_and_a_name_that_is_no_file_is_told(
    lmlab: Lmlab, small_text: Path, tmp_path: Path
) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "run")[0] == 0
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbfthe cat")
    for text in ("marked.txt", "\ufeffthe cat"):
        code, out, err = lmlab("explain", "run", text, "--json")
        assert (code, json.loads(out)["text"], err) == (0, "the cat", "")
    assert lmlab("generate", "run", "--prompt-file", "marked.txt", "--tokens", "1")[1].startswith("the cat")
    code, _, err = lmlab("explain", "run", "marker.txt")
    assert code == 0
    assert "there is no file marker.txt" in err


def test_an_undertrained_run_says_so_once(lmlab: Lmlab, small_text: Path) -> None:
    code, out, err = lmlab("train", "feedforward", small_text, "--budget", "40steps", "--out", "run")
    assert code == 0, err
    assert (out + err).count("undertrained: ") == 1, out + err


def test_what_a_comparison_says_is_one_line_of_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    LiveTable().say("word " * 40)
    assert capsys.readouterr().err.count("\n") == 1


def test_a_damaged_result_of_a_sweep_is_one_line(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Processes, "run", Here.run)
    asked = ("sweep", "bag", small_text, "--over", "tokenizer=byte,char", "--out", "sweep")
    assert lmlab(*asked)[0] == 0
    Path("sweep/tokenizer=byte-seed0/result.json").write_text('{"job": "')
    refused(lmlab(*asked), "sweep-attempt-damaged", "byte-seed0/result.json", "delete")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="a shell that names its pipes is a matter of Unix")
def test_what_a_shell_names_by_the_number_of_a_pipe_is_kept_and_read(
    lmlab: Lmlab, small_text: Path, piped: Callable[[bytes], str]
) -> None:
    assert lmlab("train", "bag", piped(small_text.read_bytes()), "--out", "run")[0] == 0
    done(lmlab("eval", "run"))
    out = done(lmlab("score", "run", "--lines", piped(b"the cat\nthe dog\n")))
    assert [line.split("\t")[-1] for line in out.splitlines()] == ["the cat", "the dog"]


@pytest.mark.skipif(sys.platform == "win32", reason="there, a folder that somebody is in stays")
def test_a_current_folder_that_was_deleted_is_said_to_be_gone(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    assert lmlab("train", "bag", small_text, "--out", tmp_path / "run")[0] == 0
    call = f"mkdir d && cd d && rmdir ../d && {sys.executable} -m lmlab score {tmp_path / 'run'} hi"
    paths = {"PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))}  # of the folder that is gone none is found
    found = subprocess.run(["sh", "-c", call], cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True)
    refused(Result((found.returncode, found.stdout, found.stderr)), "the current folder no longer")
