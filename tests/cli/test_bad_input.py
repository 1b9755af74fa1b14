"""A mistake by the user ends with one line that says what would be right, exit code 2, and nothing damaged."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab.cli.app import app, main
from lmlab.text import files

Lmlab = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lmlab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Lmlab:
    """Runs the command line as the script would, in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["lmlab", *map(str, arguments)])
        app.registered_commands.clear()
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return run


def refused(result: tuple[int, str, str], *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr with these words."""
    code, out, err = result
    assert code == 2, err
    assert out == ""
    assert err.startswith("lmlab: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


TINY = ["--set", "layers=1", "--set", "width=32", "--set", "context=16", "--budget", "3steps"]


@pytest.fixture
def run_folder(lmlab: Lmlab, small_text: Path) -> Path:
    code, _, err = lmlab("train", "ngram", small_text, "--out", "good")
    assert code == 0, err
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
    code, _, err = lmlab("train", "ngram", "line.txt", "--set", "order=3", "--out", "run")
    assert code == 0, err


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
        (["train", "gpt", "small.txt", "--set", "layer=2"], ["'layers'"]),
        (["train", "gpt", "small.txt", "--set", "layers=two"], ["whole number"]),
        (["train", "gpt", "small.txt", "--set", "positions=rotatory"], ["rotary"]),
        (["train", "gpt", "small.txt", "--set", "layers"], ["key=value"]),
        (["train", "gpt", "small.txt", "--learn", "rate=1"], ["no setting"]),
        (["train", "gpt", "small.txt", "--budget", "soon"], ["3m"]),
        (["train", "gpt", "small.txt", "--tokenizer", "word"], ["words"]),
        (["train", "gpt", "small.txt", "--split", "1,2"], ["80,10,10"]),
        (["train", "gpt", "small.txt", "--split", "0,50,50"], ["80,10,10"]),
        (["train", "gpt", "small.txt", "--device", "tpu"], ["cpu"]),
        (["train"], ["name a model"]),
        (["train", "--resume"], ["--out"]),
        (["trian"], ["trian"]),
        (["eval"], ["--help"]),
        (["eval", "small.txt"], ["small.txt"]),
        (["generate", "nowhere"], ["nowhere"]),
        (["compare", "small.txt", "--models", "gpt,ngrm"], ["'ngram'"]),
        (["compare", "small.txt", "--budget", "100steps"], ["5m"]),
        (["compare", "small.txt", "--split", "90,10,0"], ["test part"]),
        (["sweep", "gpt", "small.txt"], ["--over"]),
        (["sweep", "gpt", "small.txt", "--over", "layers"], ["layers=2,4"]),
        (["data", "get", "shakespear"], ["shakespeare"]),
        (["data", "fetch"], ["list, get or show"]),
    ],
)
def test_a_slip_of_the_pen_says_what_would_be_right(
    lmlab: Lmlab, small_text: Path, arguments: list[str], words: list[str]
) -> None:
    refused(lmlab(*arguments), *words)
    assert not Path("runs").exists()


def test_a_run_is_never_overwritten(lmlab: Lmlab, run_folder: Path, small_text: Path) -> None:
    before = {path: path.read_bytes() for path in run_folder.iterdir() if path.is_file()}
    refused(lmlab("train", "bag", small_text, "--out", "good"), "not empty")
    assert {path: path.read_bytes() for path in run_folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "damage", ["truncated weights", "no weights", "other weights", "torn config", "no config", "no tokenizer"]
)
def test_a_damaged_run_is_recognised(lmlab: Lmlab, run_folder: Path, damage: str) -> None:
    weights, config = run_folder / "model.safetensors", run_folder / "config.json"
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
    else:
        (run_folder / "tokenizer.json").unlink()
    refused(lmlab("eval", run_folder))
    refused(lmlab("generate", run_folder))


def test_a_text_that_changed_since_training_is_not_measured_silently(
    lmlab: Lmlab, run_folder: Path, small_text: Path
) -> None:
    small_text.write_text(small_text.read_text().replace("cat", "cow"))
    refused(lmlab("eval", run_folder), "changed")


def test_a_full_disk_leaves_what_was_there(lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = lmlab("train", "gpt", small_text, "--out", "run", *TINY)
    assert code == 0, err

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    refused(lmlab("train", "gpt", small_text, "--out", "other", *TINY), "No space left")
    monkeypatch.undo()
    assert not list(Path("other").glob("*.safetensors")) if Path("other").exists() else True


def test_an_unfinished_run_says_how_to_finish_it(lmlab: Lmlab, run_folder: Path) -> None:
    config = json.loads((run_folder / "config.json").read_text())
    config["status"] = "unfinished"
    (run_folder / "config.json").write_text(json.dumps(config))
    refused(lmlab("eval", run_folder), "--resume")


def test_json_is_one_document_and_nothing_else(lmlab: Lmlab, run_folder: Path) -> None:
    code, out, _ = lmlab("eval", run_folder, "--json")
    assert code == 0
    found = json.loads(out)
    wanted = "bits_per_byte interval nats bytes tokens unknown_tokens perplexity context certificate seconds model data"
    assert set(wanted.split()) <= set(found)
    assert found["certified"] is True
    assert all(isinstance(held, bool) for held in found["certificate"].values())


def test_help_names_every_verb_without_importing_torch(lmlab: Lmlab) -> None:
    code, out, _ = lmlab("--help")
    assert code == 0
    for verb in ("compare", "train", "eval", "generate", "sweep", "compress", "decompress", "data"):
        assert verb in out
