"""Mixing runs: what comes out stands by itself, says what it was made of, and predicts better than its parts."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import torch

import lmlab as lab
from command_line import refused
from lmlab.config import Mistake
from lmlab.learn.run import Run
from mistakes import mistake
from thinning import thinned

Lmlab = Callable[..., tuple[int, str, str]]
TEXT = "".join(topics[name] for name in sorted(topics)[:24])[:80_000]
SMALL = {"gru": {"layers": 1, "width": 32, "embedding_width": 16, "tie": False, "dropout": 0.0}, "ngram": {"order": 2}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """A counted and a learned model on 80 kB of English, and one that knows nothing."""
    folder = tmp_path_factory.mktemp("mixing")
    (folder / "text.txt").write_text(TEXT)
    options = {"tokenizer": "char", "budget": "80steps", "split_by": "tail"}
    return [
        lab.train(model, folder / "text.txt", out=folder / model, settings=SMALL.get(model), **options)  # type: ignore[arg-type]
        for model in ("ngram", "gru", "uniform")
    ]


def test_a_mix_is_better_than_its_parts_and_certified(trained: list[Run], tmp_path: Path) -> None:
    made = lab.mix(trained[:2], out=tmp_path / "mix")
    result = lab.evaluate(made)
    best = min(lab.evaluate(run).bits_per_byte for run in trained[:2])
    assert result.certified, result.certificate.failures
    assert result.bits_per_byte < best


def test_it_stands_by_itself_when_it_is_moved_and_its_parts_are_gone(trained: list[Run], tmp_path: Path) -> None:
    copies = [shutil.copytree(run.folder, tmp_path / run.folder.name) for run in trained[:2]]
    made = lab.mix(copies, out=tmp_path / "mix")
    tokens_BT = torch.randint(made.model.vocab_size, (2, 50), generator=torch.Generator().manual_seed(0))
    expected_BT = made.model.score(tokens_BT)
    for folder in copies:
        shutil.rmtree(folder)
    shutil.move(tmp_path / "mix", tmp_path / "elsewhere")
    assert torch.equal(lab.load(tmp_path / "elsewhere").model.score(tokens_BT), expected_BT)


def test_its_record_says_what_it_was_made_of_and_what_all_of_that_cost(trained: list[Run], tmp_path: Path) -> None:
    made = lab.mix(trained, out=tmp_path / "mix")
    parts = lab.load(tmp_path / "mix").record.inputs.parts
    assert [part.model for part in parts] == ["ngram", "gru", "uniform"]
    assert [part.sha256 for part in parts] == [run.record.model.sha256 for run in trained]
    assert sum(part.weight for part in parts) == pytest.approx(1.0)
    assert parts[2].weight == 0
    assert "left out" in made.record.result.message
    assert f"lmlab mix {trained[0].folder}" in (tmp_path / "mix" / "recipe.toml").read_text()
    assert made.record.result.seconds > sum(run.record.result.seconds for run in trained[:2])


def test_the_weights_know_nothing_of_the_test_part(tmp_path: Path) -> None:
    gates = []
    for name, test in (("one", TEXT[:5_000]), ("two", "something else entirely, " * 200)):
        folder = tmp_path / name
        folder.mkdir()
        for part, text in (("train", TEXT[:30_000]), ("valid", TEXT[30_000:50_000]), ("test", test)):
            (folder / f"{part}.txt").write_text(text)
        files = {part: folder / f"{part}.txt" for part in ("valid", "test")}
        runs = [lab.train(m, folder / "train.txt", out=folder / m, **files) for m in ("bag", "ngram")]  # type: ignore[arg-type]
        gates.append(lab.mix(runs, out=folder / "mix").saved.tensors())
    assert gates[0].keys() == gates[1].keys()
    assert all(torch.equal(gates[0][name], gates[1][name]) for name in gates[0])


def test_a_mix_of_mixes_is_a_mix(trained: list[Run], tmp_path: Path) -> None:
    inner = lab.mix(trained[:2], out=tmp_path / "inner")
    outer = lab.mix([inner, trained[0]], out=tmp_path / "outer")
    assert lab.evaluate(lab.load(outer.folder)).certified


@pytest.mark.parametrize("options", thinned([[], ["--adapt"]], [["--adapt"]]))
def test_a_text_compressed_with_a_mix_comes_back(
    options: list[str], trained: list[Run], lmlab: Lmlab, tmp_path: Path
) -> None:
    folders = [run.folder for run in trained[:2]]
    code, out, err = lmlab("mix", *folders, "--out", "mix", "--json", *options)
    assert code == 0, err
    assert json.loads(out)["model"]["config"]["adapt"] is bool(options)
    (tmp_path / "some.txt").write_text(TEXT[:250])
    assert lmlab("compress", "some.txt", "--model", "mix", "-o", "some.lm")[0] == 0
    assert lmlab("decompress", "some.lm", "--model", "mix", "-o", "again.txt")[0] == 0
    assert (tmp_path / "again.txt").read_text() == TEXT[:250]
    code, out, err = lmlab("generate", "mix", "--prompt", "The ", "--method", "beam", "--tokens", "5")
    assert code == 0, err
    (tmp_path / "other.txt").write_text(topics["types"][:1500])
    code, out, err = lmlab("eval", "mix", "other.txt")
    assert code == 0, err
    assert ("adaptive" in out) is bool(options)


def test_what_cannot_be_mixed_is_refused_in_one_line(trained: list[Run], lmlab: Lmlab, small_text: Path) -> None:
    ngram, gru = (run.folder for run in trained[:2])
    assert lmlab("train", "bag", small_text, "--out", "other")[0] == 0
    text = trained[0].record.inputs.corpus["text"]
    assert lmlab("train", "bag", text, "--out", "bytes", "--tokenizer", "byte")[0] == 0
    assert lmlab("train", "bag", text, "--out", "split", "--split", "70,20,10")[0] == 0
    refused(lmlab("mix", ngram, "--out", "mix"), "two runs or more")
    refused(lmlab("mix", ngram, "nowhere", "--out", "mix"), "nowhere")
    refused(lmlab("mix", ngram, "bytes", "--out", "mix"), "another tokenizer", "byte")
    refused(lmlab("mix", ngram, "split", "--out", "mix"), "another t")
    refused(lmlab("mix", ngram, gru, "--out", "other"), "not empty")
    assert lmlab("mix", ngram, gru, "--out", "mix")[0] == 0
    refused(lmlab("count", "mix"), "lmlab mix RUN RUN")
    refused(lmlab("count", "./mix"), "a mix")
    refused(lmlab("train", "--resume", "--out", "mix", "--budget", "+5steps"), "lmlab mix RUN RUN")
    refused(lmlab("train", "mix", small_text), "lmlab mix RUN RUN")
    refused(lmlab("compare", small_text, "--models", "mix,ngram"), "lmlab mix RUN RUN")
    refused(lmlab("sweep", "mix", small_text, "--over", "adapt=true,false"), "lmlab mix RUN RUN")


def test_whoever_mixes_a_run_that_was_stopped_is_told_so(
    trained: list[Run], lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = trained[0].record.inputs.corpus["text"]
    with monkeypatch.context() as patch:
        patch.setattr("lmlab.learn.loop.interruptible", contextmanager(lambda: iter([lambda: True])))
        lmlab(
            "train", "gru", text, "--tokenizer", "char", "--split-by", "tail", "--budget", "80steps", "--out", "stopped"
        )
    code, _, err = lmlab("mix", trained[0].folder, "stopped", "--out", "mix")
    assert code == 0, err
    assert "stopped is unfinished" in err


def test_it_is_fitted_on_a_number_of_tokens_that_there_can_be(trained: list[Run], tmp_path: Path) -> None:
    for tokens in (0, -1):
        with mistake("mix-tokens-below-one"):
            lab.mix(trained[:2], out=tmp_path / "mix", tokens=tokens)
    assert not (tmp_path / "mix").exists()


def test_too_little_validation_text_is_refused(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT[:1000])
    runs = [lab.train(m, tmp_path / "text.txt", out=tmp_path / m, split=(90, 5, 5)) for m in ("bag", "ngram")]
    with pytest.raises(Mistake, match="too few to fit weights on"):
        lab.mix(runs, out=tmp_path / "mix")
    result = lmlab("mix", *(run.folder for run in runs), "--out", "mix")
    refused(result, "mix-with-short-validation")
    assert "--set" not in result[2]  # mixing has no setting of that name


def _reviews(data: Path) -> str:
    with gzip.open(data / "imdb" / "train.tsv.gz", "rt", encoding="utf-8") as file:
        return "".join(line.partition("\t")[2] for _, line in zip(range(800), file, strict=False))


REAL: dict[str, tuple[str, Callable[[Path], str]]] = {
    "plays": ("char", lambda data: (data / "tinyshakespeare" / "input.txt").read_text()),
    "newspaper": ("words", lambda data: (data / "ptb" / "ptb.train.txt").read_text()[:1_000_000]),
    "reviews": ("bpe:512", _reviews),
    "captions": ("char", lambda data: (data / "multi30k" / "train.de").read_text(encoding="utf-8")[:600_000]),
    "french": ("words", lambda data: (data / "multi30k" / "train.fr").read_text(encoding="utf-8")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_mix_is_never_worse_than_its_best_part_on_real_texts(name: str, bench_data: Path, tmp_path: Path) -> None:
    tokenizer, read = REAL[name]
    (tmp_path / "text.txt").write_text(read(bench_data), encoding="utf-8")
    runs = [
        lab.train(m, tmp_path / "text.txt", out=tmp_path / m, tokenizer=tokenizer, split=(90, 5, 5), budget="300steps")
        for m in ("ngram", "lstm", "gpt")
    ]
    best = min(lab.evaluate(run).bits_per_byte for run in runs)
    for adapt in (False, True):
        result = lab.evaluate(lab.mix(runs, out=tmp_path / f"mix{adapt}", adapt=adapt))
        assert result.certified
        assert result.bits_per_byte <= best + 0.002
