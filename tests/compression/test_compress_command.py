"""`lmlab compress` and `lmlab decompress`, as a user meets them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from lmlab.cli import app
from lmlab.compression import decompress
from lmlab.hardware.openmp import set_threads
from lmlab.learn.run import load_run
from lmlab.learn.train import train
from lmlab.measure import score_part
from lmlab.text.files_and_folders import checked
from lmlab.text.parts import Part
from processes import FORKED

TEXT = "Pack my box with five dozen liquor jugs — 🙂 unséen\r\n\n  and no line end"


@pytest.fixture(scope="module")
def runs(tmp_path_factory, learned) -> Path:
    """A folder with two small runs: `ngram` in words and `gpt` in characters."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "learned.txt").write_text(learned)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMLAB_CACHE", str(folder / "cache"))
        small = {"layers": 1, "width": 32, "heads": 2, "context": 32}
        for name, spec, settings in (("ngram", "words", {}), ("gpt", "char", small)):
            train(
                name,
                folder / "learned.txt",
                out=folder / name,
                tokenizer=spec,
                budget="3steps",
                settings=settings,
                device="cpu",
            )
    return folder


@pytest.fixture
def lmlab(monkeypatch, capsys, tmp_path):
    """(arguments) -> (exit code, stdout, stderr), run in an empty folder."""
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMLAB_DEBUG", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lmlab", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            app.main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return call


@pytest.mark.parametrize("name", ["ngram", "gpt"])
@pytest.mark.parametrize("text", [TEXT, "", "x", "\ufeff" + TEXT])
def test_a_file_comes_back_byte_for_byte(lmlab, runs, name, text):
    Path("in.txt").write_bytes(text.encode())
    code, out, _ = lmlab("compress", "in.txt", "--model", runs / name, "-o", "small", "--check")
    assert code == 0
    assert f"{len(text.encode()):,} bytes" in out
    code, out, _ = lmlab("decompress", "small", "--model", runs / name, "-o", "out.txt")
    assert code == 0, out
    assert Path("out.txt").read_bytes() == text.encode()


def test_a_compressed_text_comes_back_through_a_pipe(lmlab, runs):
    """Of a named pipe, as `<(...)` makes one."""
    Path("in.txt").write_bytes(TEXT.encode())
    assert lmlab("compress", "in.txt", "--model", runs / "ngram", "-o", "small")[0] == 0
    reading, writing = os.pipe()
    os.write(writing, Path("small").read_bytes())  # little enough to fit into the pipe
    os.close(writing)
    assert lmlab("decompress", f"/dev/fd/{reading}", "--model", runs / "ngram", "-o", "out.txt")[0] == 0
    os.close(reading)
    assert Path("out.txt").read_bytes() == TEXT.encode()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["{compress} | {decompress} -", "{decompress} <({compress})"])
def test_a_shell_pipes_a_compressed_text(runs, tmp_path, way):
    Path(tmp_path, "in.txt").write_bytes(TEXT.encode())
    lmlab = f"{sys.executable} -m lmlab"
    small = f"{lmlab} compress {tmp_path}/in.txt --model {runs}/ngram -o -"
    command = way.format(compress=small, decompress=f"{lmlab} decompress --model {runs}/ngram -o -")
    found = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert found.stdout == TEXT.encode(), found.stderr


@pytest.mark.slow
def test_the_sizes_and_the_claim_are_told(lmlab, runs, held_out):
    held_out = held_out[:1000]
    Path("in.txt").write_text(held_out)
    code, out, err = lmlab("compress", "in.txt", "--model", runs / "ngram", "-o", "small", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    size = Path("small").stat().st_size
    assert told["original_bytes"] == len(held_out.encode())
    assert told["compressed_bytes"] == size
    assert told["bits_per_byte"] == pytest.approx(8 * size / len(held_out.encode()))
    assert told["ratio"] == pytest.approx(len(held_out.encode()) / size)
    run = load_run(runs / "ngram")
    scored = score_part(run.model, run.tokenizer, Part("test", [checked(Path("in.txt"))]))
    assert told["claimed_bits_per_byte"] == pytest.approx(scored.bits_per_byte, rel=1e-6)
    assert told["excess"] == pytest.approx(8 * size / told["claimed_bits"] - 1)
    code, out, _ = lmlab("compress", "in.txt", "--model", runs / "ngram", "-o", "again")
    assert code == 0
    assert f"{told['bits_per_byte']:.4f} bits per byte" in out
    assert f"claims {told['claimed_bits']:,.0f} bits" in out
    code, out, _ = lmlab("decompress", "small", "--model", runs / "ngram", "-o", "out.txt", "--json")
    assert json.loads(out)["original_bytes"] == told["original_bytes"]


def test_another_process_with_other_threads_opens_it(lmlab, runs, held_out):
    Path("in.txt").write_text(held_out[:300])
    assert lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "small", "--streams", "3")[0] == 0
    with ProcessPoolExecutor(1, mp_context=FORKED) as pool:
        text = pool.submit(opened_with_two_threads, Path("small").read_bytes(), runs / "gpt").result()
    assert text == held_out[:300]


def opened_with_two_threads(small: bytes, folder: Path) -> str:
    set_threads(2)
    run = load_run(folder)
    return decompress(run.model, run.tokenizer, small)


def test_the_content_of_a_gzip_file_is_compressed(lmlab, runs):
    Path("in.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert lmlab("compress", "in.txt.gz", "--model", runs / "gpt", "-o", "small")[0] == 0
    assert lmlab("decompress", "small", "--model", runs / "gpt", "-o", "out.txt")[0] == 0
    assert Path("out.txt").read_bytes() == TEXT.encode()


def mistake(result: tuple[int, str, str]) -> str:
    """The one line on stderr of a mistake by the user."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lmlab: ")
    return err


def test_an_output_that_exists_is_replaced_only_by_force(lmlab, runs):
    Path("in.txt").write_text(TEXT)
    Path("small").write_text("precious")
    assert "--force" in mistake(lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "small"))
    assert Path("small").read_text() == "precious"
    assert lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "small", "--force")[0] == 0
    assert "--force" in mistake(lmlab("decompress", "small", "--model", runs / "gpt", "-o", "in.txt"))
    assert lmlab("decompress", "small", "--model", runs / "gpt", "-o", "in.txt", "--force")[0] == 0
    Path("folder").mkdir()
    assert "is a folder" in mistake(lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "folder", "--force"))


def test_what_cannot_be_opened_is_refused_and_nothing_is_written(lmlab, runs):
    Path("in.txt").write_text(TEXT)
    assert lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "small")[0] == 0
    whole = Path("small").read_bytes()
    Path("damaged").write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    before = sorted(Path().rglob("*"))
    assert "another model" in mistake(lmlab("decompress", "small", "--model", runs / "ngram", "-o", "out.txt"))
    assert "damaged: " in mistake(lmlab("decompress", "damaged", "--model", runs / "gpt", "-o", "out.txt"))
    assert "not made by" in mistake(lmlab("decompress", "in.txt", "--model", runs / "gpt", "-o", "out.txt"))
    assert "nowhere" in mistake(lmlab("decompress", "nowhere", "--model", runs / "gpt", "-o", "out.txt"))
    assert "no run" in mistake(lmlab("decompress", "small", "--model", "norun", "-o", "out.txt"))
    assert sorted(Path().rglob("*")) == before


def test_what_cannot_be_compressed_is_refused(lmlab, runs):
    Path("latin").write_bytes("Übermut".encode("latin-1"))
    Path("in.txt").write_text(TEXT)
    assert "byte 0xDC at offset 0" in mistake(lmlab("compress", "latin", "--model", runs / "gpt", "-o", "small"))
    assert "nowhere" in mistake(lmlab("compress", "nowhere.txt", "--model", runs / "gpt", "-o", "small"))
    assert "from 1 up" in mistake(lmlab("compress", "in.txt", "--model", runs / "gpt", "-o", "small", "--streams", "0"))
    assert not Path("small").exists()


def test_a_model_that_is_certain_of_a_text_is_not_said_to_hold_it_impossible(lmlab):
    Path("in.txt").write_text("a" * 400)
    train("ngram", "in.txt", out=Path("sure"), budget="1steps", settings={"order": 1, "smoothing": "ml"}, device="cpu")
    code, out, err = lmlab("compress", "in.txt", "--model", "sure", "-o", "small", "--check")
    assert code == 0, err
    assert "certain of all of it and claims no bits" in out
