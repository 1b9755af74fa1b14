"""What a user reads who made a mistake: the sentences met most, word for word. Other tests ask for the code alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab
from some_text import TEXT

SENTENCES = {  # by command: the code of the mistake, and what is printed
    "train gpt nothing.txt": (
        "text-not-found",
        "there is no file or folder nothing.txt; name a file, a folder, a pattern, a corpus that lmlab data "
        "lists, or - for standard input",
    ),
    "train gpt empty.txt": (
        "text-empty",
        "empty.txt is empty; a text needs at least a few characters",
    ),
    "train gpt latin.txt": (
        "text-not-utf8",
        "latin.txt is not UTF-8: byte 0xE9 at offset 3. If it is Latin-1 or Windows text, convert it: iconv "
        "-f WINDOWS-1252 -t UTF-8 FILE > NEW",
    ),
    "train gpt one.txt": (
        "text-too-short",
        "one has 1 character, too few to split 80,10,10; give more text or another split",
    ),
    "train gpt dir": (
        "folder-without-text",
        "there is no text in dir: no file that ends in .txt, .text, .md, .rst, or one of these with .gz or .zst",
    ),
    "train gtp small.txt": (
        "model-unknown",
        "there is no model 'gtp'; did you mean 'gpt'? (a model of your own: package.module:Class)",
    ),
    "train --resume": (
        "resume-without-out",
        "--resume needs --out RUN: the folder of the run to go on with",
    ),
    "train --resume gpt --out run": (
        "resume-other-model",
        "run is a run of ngram, not of gpt; leave the model out to go on with it",
    ),
    "train gpt small.txt --out full": (
        "run-folder-not-empty",
        "full is not empty; name a new folder for the run",
    ),
    "train gpt small.txt --out small.txt": (
        "run-folder-below-file",
        "small.txt is a file, and nothing can be in it; name a new folder for the run",
    ),
    "train gpt small.txt --out run": (
        "run-folder-not-empty",
        "run is not empty; name a new folder for the run, or go on with the one in it: --resume --out run",
    ),
    "train ngram small.txt --learn rows=3": (
        "option-of-a-counting-model",
        "ngram counts, and learns nothing: leave --learn out",
    ),
    "train gpt small.txt --budget soon": (
        "budget-not-understood",
        "budget 'soon' is not understood; write it like 90s, 3m, 1h, 500steps, 2Mtokens or 2epochs",
    ),
    "train gpt small.txt --budget +3m": (
        "plus-without-resume",
        "a --budget with a plus is for going on with a run: --resume",
    ),
    "train gpt small.txt --seed -1": (
        "seed-out-of-range",
        "--seed is a whole number from 0 to 4294967295; got -1",
    ),
    "train gpt small.txt --split 80,20": (
        "split-not-understood",
        "--split is three shares, such as 80,10,10, the first above 0; got '80,20'",
    ),
    "train gpt small.txt --device gpu": (
        "device-unknown",
        "--device is auto, cpu, cuda, one GPU such as cuda:1, or mps; got 'gpu'",
    ),
    "train gpt small.txt --device cuda": (
        "device-not-there",
        "this torch sees no CUDA device; say --device cpu",
    ),
    "train gpt small.txt --tokenizer word": (
        "tokenizer-unknown",
        "there is no tokenizer 'word': did you mean 'words'? A tokenizer is byte, char, words, words:N (the N "
        "most frequent words) or bpe:N (N ids in all, 256 of them bytes)",
    ),
    "train gpt small.txt --tokenizer bpe:20": (
        "bpe-too-small",
        "bpe:20 leaves no room for merges: the 256 bytes come first; write bpe:512 or more, or byte",
    ),
    "train gpt small.txt --set layer=2": (
        "setting-unknown",
        "gpt has no setting 'layer'; did you mean 'layers'?",
    ),
    "train gpt small.txt --set layers=two": (
        "setting-not-read",
        "setting layers is a whole number; got 'two'",
    ),
    "train gpt small.txt --set layers": (
        "setting-without-equals",
        "setting 'layers' has no value; write it like key=value",
    ),
    "train gpt small.txt --set layers=0": (
        "setting-below-one",
        "gpt: layers must be 1 or more; got 0",
    ),
    "train gpt small.txt --set dropout=1.5": (
        "setting-not-a-share",
        "gpt: dropout is a share, from 0 to below 1; got 1.5",
    ),
    "train gpt small.txt --set positions=none-such": (
        "setting-not-a-choice",
        "setting positions is one of rotary, learned, sinusoidal; got 'none-such'",
    ),
    "train gpt small.txt --set width=30 --set heads=4": (
        "heads-do-not-divide-width",
        "width 30 is not a multiple of heads 4; choose heads that divide it",
    ),
    "train gpt small.txt --set context=1000000": (
        "setting-longer-than-text",
        "gpt: context 1000000 is longer than the training text, 4174 tokens; choose a shorter one",
    ),
    "train gpt small.txt --learn learning_rate=0": (
        "rate-not-positive",
        "training: learning_rate is a number above 0, such as 0.002; got 0",
    ),
    "train gpt small.txt --learn budget=3m": (
        "setting-is-an-option",
        "budget is an option of its own, such as --budget 3m or --seed 1",
    ),
    "train ngram small.txt --set order=0": (
        "ngram-order-out-of-range",
        "ngram order is a whole number from 1 to 256; got 0",
    ),
    "train ngram small.txt --set order=3 --set order=4": (
        "setting-twice",
        "order is set twice, as order=3 and as order=4; leave one of them out",
    ),
    "eval nowhere": (
        "run-not-found",
        "there is no run nowhere; train one with: lmlab train MODEL TEXT --out nowhere",
    ),
    "eval small.txt": (
        "run-is-file",
        "small.txt is a file; a run is a folder that lmlab train made",
    ),
    "eval full": (
        "folder-is-no-run",
        "full is not a run: it has no run.json",
    ),
    "eval foreign": (
        "folder-without-weights",
        "foreign is a Hugging Face folder without model.safetensors; for the parameters of its config.json type: lmlab count"
        " foreign/config.json",
    ),
    "eval run --part tests": (
        "part-unknown",
        "--part is train, valid or test; got 'tests'",
    ),
    "eval run small.txt --part test": (
        "part-beside-text",
        "--part test is of the run's own corpus; another text is scored whole: leave one out",
    ),
    "generate run --tokens 0": (
        "option-below-one",
        "--tokens is a whole number from 1 up; got 0",
    ),
    "generate run --temperature -1": (
        "temperature-below-zero",
        "--temperature is a number from 0 (greedy) up, 1 being the model's own; got -1.0",
    ),
    "generate run --top-p 2": (
        "top-p-no-share",
        "--top-p is a share above 0 and up to 1; got 2.0",
    ),
    "generate run --method beam --beam 2 --best 3": (
        "beam-narrower-than-best",
        "a beam of 2 has no 3 best; set --beam 3 or more",
    ),
    "generate run --prompt a --prompt-file b": (
        "two-prompts",
        "--prompt and --prompt-file both say how the text begins; leave one out",
    ),
    "score run": (
        "nothing-to-score",
        "name what to score: a text in quotes, or --lines FILE",
    ),
    "score run text --lines small.txt": (
        "text-beside-lines",
        "a text in quotes and --lines are both given; one of the two is scored: leave the other out",
    ),
    "compare small.txt --models gpt,ngrm": (
        "model-unknown",
        "there is no model 'ngrm'; did you mean 'ngram'? (a model of your own: package.module:Class)",
    ),
    "compare small.txt --budget 100steps": (
        "comparison-budget-of-steps",
        "a comparison has a budget of time for everything, such as --budget 5m, or one of time, steps or tokens for every"
        " model, such as --each 100steps",
    ),
    "compare small.txt --budget 3m --each 1m": (
        "budget-beside-each",
        "--budget is for everything and --each for every model; leave one of them out",
    ),
    "compare small.txt --split 90,10,0": (
        "comparison-without-test-part",
        "small has no test part to compare on; give it a share above 0 in --split",
    ),
    "compare small.txt --out run": (
        "comparison-folder-taken",
        "run is not empty and holds no comparison; name a new folder with --out",
    ),
    "compare small.txt --seeds 0": (
        "seeds-out-of-range",
        "--seeds is a whole number from 1 to 1000; got 0",
    ),
    "sweep ngram small.txt --over order": (
        "over-not-understood",
        "--over is key=value,value,…, such as layers=2,4; got 'order'",
    ),
    "sweep ngram small.txt --over smoothness=1,2": (
        "axis-unknown",
        "ngram has no setting 'smoothness'; did you mean 'smoothing'?",
    ),
    "mix run --out mixed": (
        "mix-of-one-run",
        "a mix is made of two runs or more; name the others too",
    ),
    "mix run run --out mixed": (
        "mix-of-one-run-twice",
        "a run is named twice; a model mixed with itself is itself",
    ),
    "translate run text": (
        "run-is-no-translator",
        "run holds an ngram, which does not translate; train one: lmlab train translator PAIRS",
    ),
    "fill run text": (
        "run-fills-no-blanks",
        "run holds an ngram, which fills no blanks; train an encoder: lmlab train bert TEXT",
    ),
    "explain attention run text": (
        "run-without-attention",
        "run holds a model of the kind ngram, which has no attention to show; these have: attention, "
        "rnn-attention, gpt, bert, translator",
    ),
    "export run -o run": (
        "out-is-folder",
        "run is a folder; name a file to write",
    ),
    "data get shakespear": (
        "corpus-unknown",
        "there is no corpus 'shakespear'; did you mean 'shakespeare'?",
    ),
    "decompress small.txt --model run -o back.txt": (
        "not-compressed",
        "small.txt: this was not made by lmlab compress, or its beginning is damaged",
    ),
    "count hf.json": (
        "config-field-unknown",
        "hf.json: the field 'n_emb' is not known and might change the count; did you mean 'n_embd'?; correct "
        "it, or take it out if it has no weights",
    ),
    "count gpt --vocab 0": (
        "count-vocab-below-one",
        "--vocab is a whole number of tokens from 1 up; got 0",
    ),
    "plan": (
        "sizes-not-enough",
        "give --parameters 7B and --tokens 1T, or one of them with --compute 1e23, or --compute 1e23 or "
        "--loss 2.0 alone",
    ),
    "vectors run neighbours king": (
        "run-without-word-vectors",
        "run holds an ngram, no run of word vectors; train them: lmlab train glove TEXT",
    ),
    "check nothing.sheet": (
        "sheet-not-found",
        "there is no file nothing.sheet; name one with a claim on a line, such as: claim 2*x == x + x",
    ),
    "curves run --over minutes": (
        "curve-axis-unknown",
        "--over is tokens, steps or seconds; got 'minutes'",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text and a run of it, beside what is neither."""
    folder = tmp_path_factory.mktemp("messages")
    (folder / "small.txt").write_text(TEXT)
    (folder / "empty.txt").write_text("")
    (folder / "one.txt").write_text("a")
    (folder / "latin.txt").write_bytes(b"caf\xe9 " * 50)
    (folder / "hf.json").write_text('{"model_type": "gpt2", "n_emb": 3}')
    (folder / "dir").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").write_text("mine")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "config.json").write_text('{"model_type": "gpt2"}')
    lab.train("ngram", folder / "small.txt", out=folder / "run")
    return folder


@pytest.fixture
def before(folder: Path, lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lmlab]:
    """The command line in that folder, in which no mistake leaves anything behind."""
    monkeypatch.chdir(folder)
    names = sorted(path.name for path in folder.rglob("*"))
    yield lmlab
    assert sorted(path.name for path in folder.rglob("*")) == names


@pytest.mark.parametrize("command", SENTENCES)
def test_a_mistake_is_said_in_this_sentence(before: Lmlab, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, sentence = SENTENCES[command]
    result = before(*command.split(" "))
    assert (result, result.code) == ((2, "", f"lmlab: {sentence}\n"), code)
