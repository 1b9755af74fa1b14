"""A mistake by the user ends with one line that says what would be right, exit code 2, and nothing damaged."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from command_line import Lmlab, done, refused
from lmlab.disk import files
from lmlab.disk.locks import LOCK
from processes import THIS_CODE

TINY = ["--set", "layers=1", "--set", "width=32", "--set", "context=16", "--budget", "3steps"]


@pytest.fixture
def run_folder(lmlab: Lmlab, small_text: Path) -> Path:
    done(lmlab("train", "ngram", small_text, "--out", "good"))
    return Path("good").resolve()


def test_a_missing_file(lmlab: Lmlab) -> None:
    refused(lmlab("train", "ngram", "nothing.txt"), "nothing.txt")


def test_an_empty_file(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    refused(lmlab("train", "ngram", "empty.txt"), "empty.txt")


def test_a_file_of_one_byte_cannot_be_divided(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a")
    refused(lmlab("train", "ngram", "one.txt"))


def test_a_binary_file(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    refused(lmlab("train", "ngram", "noise.bin"), "noise.bin")


def test_a_file_in_another_encoding_names_the_offset_and_the_remedy(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(("plain text " * 100 + "caf").encode() + b"\xe9 und weiter")
    refused(lmlab("train", "ngram", "latin.txt"), "latin.txt", "1103", "iconv")


def test_a_file_that_is_not_gzip_but_is_called_so(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "text.txt.gz").write_bytes(b"\x1f\x8bnot really")
    refused(lmlab("train", "ngram", "text.txt.gz"), "text.txt.gz")


def test_one_enormous_line_is_no_mistake(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "line.txt").write_text("abc de " * 300_000)
    done(lmlab("train", "ngram", "line.txt", "--set", "order=3", "--out", "run"))


def test_a_vocabulary_larger_than_the_text(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("train", "ngram", small_text, "--tokenizer", "bpe:60000", "--out", "run"), "bpe")
    assert not Path("run").exists()


def test_a_context_longer_than_the_text(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("train", "gpt", small_text, "--set", "context=100000", "--out", "run"), "100000", "tokens")
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "gtp", "x.txt"], ["'gpt'"]),
        (["train", "gpt", ""], ["no text was given"]),
        (["train", "gpt", "small.txt", "--set", "layer=2"], ["'layers'"]),
        (["train", "gpt", "small.txt", "--set", "layers=two"], ["whole number"]),
        (["train", "gpt", "small.txt", "--set", "positions=rotatory"], ["rotary"]),
        (["train", "gpt", "small.txt", "--set", "layers"], ["key=value"]),
        (["train", "gpt", "small.txt", "--set", "layers=0"], ["1 or more"]),
        (["train", "gpt", "small.txt", "--set", "width=-64"], ["1 or more"]),
        (["train", "gpt", "small.txt", "--set", "dropout=1.5"], ["below 1"]),
        (["train", "gpt", "small.txt", "--set", "width=96", "--set", "heads=5"], ["divide"]),
        (["train", "gpt", "small.txt", "--learn", "ratte=1"], ["no setting"]),
        (["train", "gpt", "small.txt", "--learn", "rows=-2"], ["1 or more"]),
        (["train", "gpt", "small.txt", "--set", "layers=1000000000"], ["parameters take", "GB of memory"]),
        (["train", "lstm", "small.txt", "--budget", "3steps", "--set", "width=10000000"], ["parameters take", "GB"]),
        (["train", "ngram", "small.txt", "--set", "order=1000000"], ["from 1 to 256"]),
        (["train", "gpt", "small.txt", "--learn", "rows=1000000000"], ["from 1 to 1048576"]),
        (["train", "gpt", "small.txt", "--learn", "patience=0"], ["1 or more"]),
        (["train", "gpt", "small.txt", "--learn", "learning_rate=0"], ["above 0"]),
        (["train", "gpt", "small.txt", "--learn", "weight_decay=nan"], ["from 0 up"]),
        (["train", "gpt", "small.txt", "--learn", "budget=3m"], ["--budget"]),
        (["train", "gpt", "small.txt", "--seed", "-1"], ["--seed"]),
        (["train", "gpt", "small.txt", "--seed", str(2**40)], ["seed is a whole number"]),
        (["train", "gpt", "small.txt", "--budget", "soon"], ["3m"]),
        (["train", "gpt", "small.txt", "--tokenizer", "word"], ["words"]),
        (["train", "gpt", "small.txt", "--tokenizer", ""], ["tokenizer-unknown"]),
        (["train", "glove", "small.txt", "--tokenizer", ""], ["tokenizer-unknown"]),
        (["settings", "gpt", "small.txt", "--tokenizer", ""], ["tokenizer-unknown"]),
        (["sweep", "gpt", "small.txt", "--over", "layers=2", "--tokenizer", ""], ["there is no tokenizer ''"]),
        (["compare", "small.txt", "--tokenizers", ""], ["such as --tokenizers char"]),
        (["train", "", "small.txt"], ["model-unknown"]),
        (["count", ""], ["model-unknown"]),
        (["train", "small.txt", "gpt"], ["model-unknown", "named first"]),
        (["prove", ""], ["there is no claim ''"]),
        (["train", "gpt", "small.txt", "--split", "1,2"], ["80,10,10"]),
        (["train", "gpt", "small.txt", "--split", "0,50,50"], ["80,10,10"]),
        (["train", "gpt", "small.txt", "--device", "tpu"], ["cpu"]),
        (["train"], ["name a model"]),
        (["train", "--resume"], ["--out"]),
        (["train", "--resume", "--out", "nowhere"], ["nowhere holds no run", "ngram"]),
        (["trian"], ["trian"]),
        (["eval"], ["--help"]),
        (["eval", "small.txt"], ["small.txt"]),
        (["eval", ""], ["argument-empty", "RUN is empty"]),
        (["curves", "run", ""], ["argument-empty", "RUNS is empty"]),
        (["curves", "run", "--tensorboard", ""], ["argument-empty", "--tensorboard is empty"]),
        (["train", "bag", "small.txt", "--out", ""], ["argument-empty", "--out is empty"]),
        (["explain", "attention", "run", "--html", ""], ["argument-empty", "--html is empty"]),
        (["train", "bag", "texts/nothing.txt"], ["text-not-found", "texts/nothing.txt", "lmlab data"]),
        (["check", "nothing.sheet"], ["sheet-not-found", "nothing.sheet"]),
        (["generate", "nowhere"], ["nowhere"]),
        (["compare", "small.txt", "--models", "gpt,ngrm"], ["'ngram'"]),
        (["compare", "small.txt", "--budget", "100steps"], ["5m"]),
        (["compare", "small.txt", "--split", "90,10,0"], ["test part"]),
        (["sweep", "gpt", "small.txt"], ["--over"]),
        (["sweep", "gpt", "small.txt", "--over", "layers"], ["layers=2,4"]),
        (["sweep", "gpt", "small.txt", "--over", "layers=2", "--seeds", "1000000000"], ["--seeds", "from 1 to 1000"]),
        (["compare", "small.txt", "--seeds", "1000000000"], ["--seeds", "from 1 to 1000"]),
        (["sweep", "gpt", "small.txt", "--over", "layers=2,0"], ["layers"]),
        (["sweep", "gpt", "small.txt", "--over", "layers=2", "--tokenizer", "bqe:300"], ["bpe:"]),
        (["data", "get", "shakespear"], ["shakespeare"]),
        (["data", "fetch"], ["list, get or show"]),
    ],
)
def test_a_slip_of_the_pen_says_what_would_be_right(
    lmlab: Lmlab, small_text: Path, arguments: list[str], words: list[str]
) -> None:
    refused(lmlab(*arguments), *words)
    assert not Path("runs").exists()


def test_a_slip_in_what_a_run_is_asked_says_what_would_be_right(lmlab: Lmlab, run_folder: Path) -> None:
    refused(lmlab("score", run_folder, "a text", ""), "a text to score is empty")
    refused(lmlab("eval", run_folder, "small.txt", "--part", "train"), "scored whole")


def test_a_run_in_the_place_of_a_text_is_no_text(lmlab: Lmlab, run_folder: Path) -> None:
    """Its README would be read, and measured."""
    refused(lmlab("eval", run_folder, run_folder), "text-is-a-model")


def test_a_run_is_never_overwritten(lmlab: Lmlab, run_folder: Path, small_text: Path) -> None:
    before = {path: path.read_bytes() for path in run_folder.iterdir() if path.is_file()}
    refused(lmlab("train", "bag", small_text, "--out", "good"), "not empty", "--resume --out good")
    refused(lmlab("train", "bag", "--out", "good", "--resume"), "a run of ngram, not of bag")
    assert {path: path.read_bytes() for path in run_folder.iterdir() if path.is_file()} == before


def test_a_folder_of_other_things_is_left_alone(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    result = lmlab("train", "bag", small_text, "--out", tmp_path)
    refused(result, "run-folder-not-empty")
    assert "--resume" not in result[2]  # there is no run in it


def edit_json(path: Path, change: Callable[[dict], object]) -> None:
    """Change what a file of JSON holds."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "damage",
    [
        "truncated weights",
        "no weights",
        "other weights",
        "torn config",
        "no config",
        "poor config",
        "no hash",
        "no tokenizer",
        "poor tokenizer",
    ],
)
def test_a_damaged_run_is_recognised(lmlab: Lmlab, run_folder: Path, damage: str) -> None:
    weights, config = run_folder / "model.safetensors", run_folder / "run.json"
    if damage == "truncated weights":
        weights.write_bytes(weights.read_bytes()[:-10])
    elif damage == "no weights":
        weights.unlink()
    elif damage == "other weights":
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(bytes(content))
    elif damage == "torn config":
        config.write_text(config.read_text()[:100])
    elif damage == "no config":
        config.unlink()
    elif damage == "poor config":
        edit_json(config, lambda saved: saved["model"].pop("name"))
    elif damage == "no hash":
        edit_json(config, lambda saved: saved["model"].pop("sha256"))
    elif damage == "no tokenizer":
        (run_folder / "tokenizer.json").unlink()
    else:
        edit_json(run_folder / "tokenizer.json", lambda saved: saved["model"].pop("byte_fallback"))
    refused(lmlab("eval", run_folder))
    refused(lmlab("generate", run_folder))


def test_weights_that_do_not_fit_the_settings_are_one_line_without_the_words_of_torch(
    lmlab: Lmlab, small_text: Path
) -> None:
    assert lmlab("train", "gpt", small_text, "--out", "run", *TINY)[0] == 0
    config = Path("run/run.json")
    edit_json(config, lambda saved: saved["model"]["config"].update(width=64))
    fits = "these are no weights of such a"
    refused(lmlab("eval", "run"), fits, "278×32, where 278×64 is", "and 7 more are wrong")
    edit_json(config, lambda saved: saved["model"]["config"].update(width=32, layers=2))
    refused(lmlab("generate", "run"), fits, "norm_attention is missing", "and 5 more are wrong")
    result = lmlab("eval", "run")
    assert "state_dict" not in result[2]


def test_going_on_with_a_run_that_forgot_its_sizes_is_one_line(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = contextmanager(lambda: iter([lambda: True]))
    with monkeypatch.context() as patch:
        patch.setattr("lmlab.learn.loop.interruptible", stopped)
        lmlab("train", "gpt", small_text, "--out", "run", *TINY)
    config = Path("run/run.json")
    edit_json(config, lambda saved: saved["model"]["config"].update(width=64))
    refused(lmlab("train", "--resume", "--out", "run"), "checkpoint-does-not-fit-record", "278×32")
    edit_json(config, lambda saved: saved["model"]["config"].pop("width"))
    kept = config.read_bytes()
    for more in ([], ["--budget", "+3steps"]):
        refused(
            lmlab("train", "--resume", "--out", "run", *more),
            "record-lacks-sizes",
            "model.config.width",
        )
    assert config.read_bytes() == kept


def test_a_text_that_changed_since_training_is_not_measured_silently(
    lmlab: Lmlab, run_folder: Path, small_text: Path
) -> None:
    small_text.write_text(small_text.read_text().replace("cat", "cow"))
    refused(lmlab("eval", run_folder), "changed")


def test_a_full_disk_leaves_what_was_there(lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lmlab("train", "gpt", small_text, "--out", "run", *TINY)[0] == 0
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        refused(lmlab("train", "gpt", small_text, "--out", "other", *TINY), "No space left", "make room on that disk")
        Path("short.txt").write_text("the cat sat")  # coded before a slow machine says how far it is
        refused(lmlab("compress", "short.txt", "--model", "run", "-o", "small.lm"), "No space left")
    assert [path.name for path in Path("other").rglob("*")] == [LOCK]
    assert not list(Path().glob("*small.lm*"))
    assert {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()} == before


def test_an_unfinished_run_says_how_to_finish_it(lmlab: Lmlab, run_folder: Path) -> None:
    edit_json(run_folder / "run.json", lambda saved: saved["result"].update(status="unfinished"))
    refused(lmlab("eval", run_folder), "--resume")


def test_json_is_one_document_and_nothing_else(lmlab: Lmlab, run_folder: Path) -> None:
    out = done(lmlab("eval", run_folder, "--json"))
    found = json.loads(out)
    wanted = "bits_per_byte interval nats bytes tokens unknown_tokens perplexity context certificate seconds model data"
    assert set(wanted.split()) <= set(found)
    assert found["certified"] is True
    assert all(isinstance(held, bool) for held in found["certificate"].values())


VERBS = ("compare", "train", "eval", "generate", "sweep", "compress", "decompress", "check", "prove", "data")


def test_help_names_every_verb(lmlab: Lmlab) -> None:
    out = done(lmlab("--help"))
    assert [verb for verb in VERBS if verb not in out] == []


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from lmlab.cli.app import main; sys.argv = ['lmlab', '--help']\n"
        "try: main()\n"
        "except SystemExit: print([m for m in ('torch', 'numpy', 'matplotlib', 'sympy') if m in sys.modules])"
    )
    environment = os.environ | THIS_CODE
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


SLIPS = {
    "eval none": "there is no run none",
    "generate none": "there is no run none",
    "compress small.txt --model none -o x": "there is no run none",
    "explain attention none text": "there is no run none",
    "train gpt none.txt": "file or folder none.txt",
    "train gtp small.txt": "did you mean 'gpt'?",
    "train gpt small.txt --budget soon": "'soon' is not understood",
    "train gpt --bugdet 3m": "No such option: --bugdet",
    "compare none.txt": "file or folder none.txt",
    "compare nothing*.txt --models ngrm": "did you mean 'ngram'?",
    "sweep gpt none.txt --over layers=1": "file or folder none.txt",
    "settings gpt none.txt": "file or folder none.txt",
}


def test_slips_are_answered_before_torch_is_imported(small_text: Path) -> None:
    script = (
        "import sys; from lmlab.cli.app import main\n"
        f"for slip in {list(SLIPS)}:\n"
        "    sys.argv = ['lmlab', *slip.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    environment = os.environ | THIS_CODE
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 False"] * len(SLIPS)
    said = done.stderr.splitlines()
    assert len(said) == len(SLIPS)
    assert [words for words, line in zip(SLIPS.values(), said, strict=True) if words not in line] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tokens", "0"], ["option-below-one"]),
        (["--best", "3"], ["--best is for --method beam", "--samples 3"]),
        (["--method", "beam", "--best", "5"], ["--beam 5 or more"]),
        (["--method", "greedy", "--top-p", "0.5"], ["--top-p is for --method sample"]),
        (["--method", "beam", "--temperature", "0.5"], ["--temperature 0.5 is for"]),
        (["--method", "beem"], ["did you mean 'beam'?"]),
        (["--stop", ""], ["at least one character"]),
    ],
)
def test_a_slip_in_generating_is_answered_in_the_words_of_the_command(
    lmlab: Lmlab, run_folder: Path, arguments: list[str], words: list[str]
) -> None:
    refused(lmlab("generate", run_folder, "--prompt", "the cat", *arguments), *words)


def test_settings_that_do_not_go_together_leave_no_folder_behind(lmlab: Lmlab, small_text: Path) -> None:
    wrong = ("--set", "width=30", "--set", "heads=4")
    refused(lmlab("train", "gpt", small_text, "--out", "run", *wrong), "heads")
    assert not Path("run").exists()


def test_a_training_window_longer_than_the_context(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("train", "gpt", small_text, "--out", "run", "--learn", "length=17", *TINY), "17", "context")
    assert not Path("run").exists()


def test_torch_running_out_of_memory_is_no_bug(lmlab: Lmlab, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def enormous(*_: object, **__: object) -> None:
        torch.empty(1 << 50)

    monkeypatch.setattr("lmlab.engine.stream", enormous)
    refused(lmlab("generate", run_folder), "not enough memory")


def test_what_is_wrong_with_a_run_is_not_said_of_the_compressed_file(lmlab: Lmlab, run_folder: Path) -> None:
    text = Path("note.txt")
    text.write_text("the cat")
    assert lmlab("compress", text, "--model", run_folder, "-o", "note.lm")[0] == 0
    (run_folder / "model.safetensors").unlink()
    code, _, err = lmlab("decompress", "note.lm", "--model", run_folder, "-o", "again.txt")
    assert code == 2
    assert err.startswith(f"lmlab: {run_folder}")


def test_compressing_a_file_that_is_not_there_names_no_corpus(lmlab: Lmlab, run_folder: Path) -> None:
    refused(lmlab("compress", "sotu", "--model", run_folder, "-o", "small"), "text-file-not-found", "no file sotu")


def test_a_name_in_brackets_is_shown_as_it_is(lmlab: Lmlab, run_folder: Path, small_text: Path) -> None:
    small_text.with_name("draft[bold].txt").write_text("the cat sat on the mat")
    out = done(lmlab("eval", run_folder, "draft[bold].txt"))
    assert "draft[bold]:" in out
    assert "note: the text is too short for a confidence interval" in out


def test_one_byte_is_no_bytes(lmlab: Lmlab, run_folder: Path) -> None:
    Path("end.txt").write_text("\n")
    out = done(lmlab("eval", run_folder, "end.txt"))
    assert "1 byte, 1 token, 0 unknown" in out
    assert "interval (1 byte)" in out


def test_help_says_where_a_run_is_saved(lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "runs/MODEL-TEXT" in lmlab("train", "--help")[1]


@pytest.mark.parametrize(
    "option", [["--budget", "9steps"], ["--set", "layers=2"], ["--tokenizer", "byte"], ["--seed", "0"]]
)
def test_a_run_goes_on_as_it_began_or_not_at_all(lmlab: Lmlab, small_text: Path, option: list[str]) -> None:
    assert lmlab("train", "gpt", small_text, "--out", "run", "--seed", 7, *TINY)[0] == 0
    before = Path("run/run.json").read_bytes()
    refused(lmlab("train", "--resume", "--out", "run", *option), option[0], "leave")
    assert Path("run/run.json").read_bytes() == before
    again = lmlab("train", "gpt", small_text.name, "--out", "run", "--resume", "--seed", 7, *TINY)
    assert again[0] == 0, again


def test_resuming_on_another_text_is_refused(lmlab: Lmlab, run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("something else\n" * 50)
    refused(lmlab("train", "ngram", "other.txt", "--resume", "--out", run_folder), "leave the text out")


@pytest.mark.parametrize(
    "verb", [["train", "bag"], ["compare"], ["sweep", "ngram", "--over", "order=2"], ["data", "show"]]
)
def test_a_split_that_would_do_nothing_is_refused(lmlab: Lmlab, small_text: Path, verb: list[str]) -> None:
    refused(lmlab(*verb, small_text, "--split", "90,10,0", "--test", small_text), "--split", "--test")


@pytest.mark.parametrize("split", ["0,50,50", "nan,1,1", "inf,1,1", "80,20", "-1,1,1"])
def test_a_split_without_training_or_sense_is_refused(lmlab: Lmlab, small_text: Path, split: str) -> None:
    refused(lmlab("train", "bag", small_text, f"--split={split}"), "--split", "80,10,10")


def test_a_folder_of_empty_files_is_said_to_be_empty(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("")
    refused(lmlab("train", "bag", "texts"), "empty")


def test_a_file_in_the_place_of_a_run(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("eval", small_text), "is a file")


def test_a_text_that_is_gone_is_said_to_be_the_runs(lmlab: Lmlab, run_folder: Path, small_text: Path) -> None:
    small_text.unlink()
    refused(lmlab("eval", run_folder), small_text.name, "put it back")


@pytest.mark.parametrize("spec", ["bpe", "bpe:0", "words:x", "char:5"])
def test_a_tokenizer_is_not_suggested_to_someone_who_named_it(lmlab: Lmlab, small_text: Path, spec: str) -> None:
    result = lmlab("train", "bag", small_text, "--tokenizer", spec)
    refused(result, "bpe:N")
    assert "did you mean" not in result[2]


def test_commands_to_copy_survive_a_space_in_the_name(lmlab: Lmlab, small_text: Path) -> None:
    _, out, _ = lmlab("train", "bag", small_text, "--out", "my run")
    assert "lmlab eval 'my run'" in out


def test_a_setting_that_is_swept_and_set_is_refused(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("sweep", "ngram", small_text, "--over", "order=2,3", "--set", "order=4"), "--set", "--over", "order")


@pytest.mark.parametrize("tokenizer", ["char", "byte", "words", "bpe:300"])
def test_a_prompt_that_is_not_utf8(lmlab: Lmlab, small_text: Path, tokenizer: str) -> None:
    assert lmlab("train", "bag", small_text, "--tokenizer", tokenizer, "--out", "run")[0] == 0
    refused(lmlab("generate", "run", "--prompt", "a\udcffb"), "prompt-not-unicode")


@pytest.mark.parametrize("spec", ["foo", "char,foo", "bpe", "bpe:10", ","])
def test_comparing_with_a_tokenizer_that_does_not_exist_writes_nothing(
    lmlab: Lmlab, small_text: Path, spec: str
) -> None:
    refused(lmlab("compare", small_text, "--tokenizers", spec, "--out", "comparison"))
    assert not Path("comparison").exists()


def test_a_setting_of_a_model_that_is_not_compared(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("compare", small_text, "--models", "bag", "--set", "gpt.layers=2"), "gpt", "--set")


def test_comparing_without_a_test_part_says_how_to_give_one(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("compare", small_text, "--valid", small_text), "--test")
    refused(lmlab("compare", small_text, "--split", "90,10,0"), "--split")
