"""Generating in a conversation: texts, retries, going on, settings that change; and a prompt from a file."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.cli.interactive import HELP, converse
from lmlab.config import MOST_SEED, Mistake
from lmlab.engine.conversation import Conversation


@pytest.fixture
def run_folder(lmlab: Lmlab, small_text: Path) -> Path:
    assert lmlab("train", "ngram", small_text, "--out", "good")[0] == 0
    return Path("good")


@pytest.fixture
def conversation(run_folder: Path) -> Conversation:
    run = lab.load(run_folder)
    return Conversation(run.model, run.tokenizer, max_tokens=12, seed=5)


def test_each_text_has_a_seed_of_its_own_and_can_be_repeated(conversation: Conversation, run_folder: Path) -> None:
    texts = ["".join(conversation.answer("the ")), "".join(conversation.retry()), "".join(conversation.answer("the "))]
    assert texts == [lab.generate(run_folder, "the ", tokens=12, seed=5 + n)[0].text for n in range(3)]
    assert len(set(texts)) > 1


def test_a_seed_that_is_asked_for_is_that_of_the_next_text(conversation: Conversation, run_folder: Path) -> None:
    list(conversation.answer("the "))
    conversation.change("seed", "9")
    texts = ["".join(conversation.retry()), "".join(conversation.retry())]
    assert texts == [lab.generate(run_folder, "the ", tokens=12, seed=seed)[0].text for seed in (9, 10)]


def test_behind_the_last_seed_comes_the_first(conversation: Conversation, run_folder: Path) -> None:
    conversation.change("seed", str(MOST_SEED))
    texts = ["".join(conversation.answer("the ")), "".join(conversation.retry())]
    assert texts == [lab.generate(run_folder, "the ", tokens=12, seed=seed)[0].text for seed in (MOST_SEED, 0)]


def test_more_goes_on_where_the_text_ended(conversation: Conversation, run_folder: Path) -> None:
    first = "".join(conversation.answer("the cat"))
    second = "".join(conversation.more())
    assert second == lab.generate(run_folder, "the cat" + first, tokens=12, seed=6)[0].text
    assert conversation.text == first + second


def test_a_setting_that_cannot_be_is_refused_and_the_old_one_stays(conversation: Conversation) -> None:
    conversation.change("temperature", "0.5")
    for name, value in (("temperature", "-1"), ("temperature", "hot"), ("heat", "1"), ("top_p", "2")):
        with pytest.raises(Mistake):
            conversation.change(name, value)
    assert conversation.options.temperature == 0.5
    with pytest.raises(Mistake, match="prompt first"):
        list(Conversation(conversation._engine.model, conversation._engine.tokenizer).retry())


def test_lines_that_are_read_are_answered_until_they_end(
    conversation: Conversation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    lines = iter(
        ["/temperature 0", "/tokens 3", "the cat", "", "/retry", "/more", "/settings", "/top-q 1", "/tokens x"]
    )

    def read(shown: str) -> str:
        assert shown == "> "
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    converse(conversation, read)
    out, err = capsys.readouterr()
    assert out.startswith(HELP)
    first, retried, more, settings, last = out.removeprefix(HELP + "\n").split("\n", 4)
    assert first.startswith("the cat")
    assert retried.startswith("the cat")
    assert len(retried) == len("the cat") + 3
    assert len(more) == 3
    assert settings.startswith("tokens 3  temperature 0.0")
    assert last == "\n"
    assert "did you mean 'top-p'?" in err
    assert err.count("lmlab: ") == 2


def test_ctrl_c_stops_a_text_and_not_the_conversation(
    conversation: Conversation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(prompt: str) -> object:
        yield "so far"
        raise KeyboardInterrupt

    lines = iter(["one", "/help"])
    monkeypatch.setattr(conversation, "answer", stopped)

    def read(shown: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise KeyboardInterrupt from None

    converse(conversation, read)
    out = capsys.readouterr().out
    assert out.startswith("oneso far\n")
    assert "/retry" in out


def test_the_command_reads_prompts_from_standard_input(
    lmlab: Lmlab, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"the cat\n/retry\n")))
    out = done(lmlab("generate", run_folder, "--interactive", "--tokens", 9, "--seed", 2))
    wanted = [lab.generate(run_folder, "the cat", tokens=9, seed=seed)[0].text for seed in (2, 3)]
    assert out == "".join(f"the cat{text}\n\n" for text in wanted)  # nobody types, so that no sign asks for a prompt


def test_a_prompt_from_a_file(lmlab: Lmlab, run_folder: Path) -> None:
    Path("prompt.txt").write_text("the cat\n")
    by_file = lmlab("generate", run_folder, "--prompt-file", "prompt.txt", "--tokens", 9)
    assert by_file == lmlab("generate", run_folder, "--prompt", "the cat", "--tokens", 9)
    Path("windows.txt").write_bytes(b"the cat\r\n")
    assert by_file == lmlab("generate", run_folder, "--prompt-file", "windows.txt", "--tokens", 9)
    Path("latin.txt").write_bytes(b"caf\xe9")
    Path("empty.jsonl").write_text("\n\n")
    Path("number.jsonl").write_text('"the"\n{"prompt": 3}\n')
    for arguments in (
        ["--prompt-file", "nowhere.txt"],
        ["--prompt-file", "latin.txt"],
        ["--prompt-file", "prompt.txt", "--prompt", "a"],
        ["--prompts", "prompt.txt"],
        ["--prompts", "empty.jsonl"],
        ["--prompts", "number.jsonl"],
        ["--prompts", "nowhere.jsonl"],
        ["--prompts", "prompt.txt", "--prompt", "a"],
        ["--prompt", "a", "--precision", "fp8"],
        ["--prompt", "a", "--precision", "bf16"],  # a model that counts has no weights to round
        ["--interactive", "--precision", "bf16"],
        ["--interactive", "--json"],
        ["--interactive", "--samples", 2],
    ):
        refused(lmlab("generate", run_folder, *arguments))


def test_many_prompts_from_a_file_are_continued_as_each_would_be_alone(lmlab: Lmlab, run_folder: Path) -> None:
    Path("prompts.jsonl").write_text('"the cat"\n\n{"prompt": "a dog", "id": 7}\n')
    code, out, err = lmlab(
        "generate", run_folder, "--prompts", "prompts.jsonl", "--tokens", 9, "--samples", 2, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert [(each["prompt"], each.get("id")) for each in found] == [("the cat", None), ("a dog", 7)]
    for each in found:
        alone = lab.generate(run_folder, each["prompt"], tokens=9, samples=2)
        assert [r["text"] for r in each["results"]] == [a.text for a in alone]
    shown = lmlab("generate", run_folder, "--prompts", "prompts.jsonl", "--tokens", 9)[1]
    assert "the cat" + found[0]["results"][0]["text"] in shown
    assert shown.count("---") == 4


@pytest.mark.parametrize("word", ["/quit", "/exit", "/q"])
def test_a_word_leaves_too(conversation: Conversation, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter([word, "the cat"])
    converse(conversation, lambda _: next(lines))
    assert next(lines) == "the cat"  # nothing was read after it
    assert capsys.readouterr().err == ""
