"""A Hugging Face folder as a run: its scores are those of plain transformers, and its certificate says what is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from folders import TEXT, byte_level, folder_of, unigram
from tokenizers import Tokenizer as Backend

import lmlab as lab
from command_line import Lmlab, refused
from lmlab.learn.run import load_run
from lmlab.measure import Result
from lmlab.models.mix import Mix
from mistakes import mistake

FAST = ("gpt2", "llama")
SLOW = ("qwen2", "mistral", "nemotron", "olmo2", "gpt_neox", "gemma")
KINDS = [*FAST, *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW)]
CONTEXT = 24  # of the models in `folders`


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folders by kind, made once each."""
    found: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in found:
            found[kind] = folder_of(kind, tmp_path_factory.mktemp("folders") / kind)
        return found[kind]

    return make


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_text(TEXT * 4)
    return path


def plain_nats(folder: Path, text: str) -> float:
    """By transformers alone: the log-softmax of windows of all positions, each of them half a window further on."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    model = AutoModelForCausalLM.from_pretrained(folder).float().eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    total, done, start = 0.0, 0, 0
    while done < len(ids):
        window = ids[start : start + CONTEXT]
        with torch.no_grad():
            logits = model(torch.tensor([[tokenizer.eos_token_id, *window[:-1]]])).logits[0]
        nats = -logits.log_softmax(-1)[torch.arange(len(window)), window]
        total += nats[done - start :].double().sum().item()
        done, start = start + len(window), start + CONTEXT // 2
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_plain_transformers_and_all_checks_of_the_number_pass(
    kind: str, made: Any, text: Path
) -> None:
    result = lab.evaluate(made(kind), text)
    assert isinstance(result, Result)
    assert result.scored.total_nats == pytest.approx(
        plain_nats(made(kind), text.read_bytes().decode()), rel=1e-6, abs=1e-4
    )
    assert result.certificate.failures == []
    assert result.certificate.not_known == ["held_out"]
    assert not result.certified
    assert "not known" in result.certificate.verdict
    assert "EOS, <|endoftext|>" in result.notes[0]
    assert result.context.window == CONTEXT


def test_a_text_that_spells_special_tokens_has_no_special_tokens(made: Any) -> None:
    run = load_run(made("gpt2"))
    end = run.tokenizer.backend.token_to_id("<|endoftext|>")
    ids = run.tokenizer.encode("a<|endoftext|>b").ids
    assert end not in ids.tolist()
    assert run.tokenizer.decode(ids) == "a<|endoftext|>b"


@pytest.mark.parametrize(("bos", "eos", "begins"), [("<s>", "<|endoftext|>", "BOS, <s>"), (None, None, "ln 303")])
def test_the_first_token_follows_bos_or_costs_as_much_as_any(
    bos: str | None, eos: str | None, begins: str, tmp_path: Path
) -> None:
    run = load_run(folder_of("llama", tmp_path / "m", byte_level(bos=True), bos=bos, eos=eos))
    model = run.model
    assert begins.replace("303", str(model.vocab_size)) in model.notes[0]
    first = -model.begin(1)[0][0]
    ids = torch.arange(model.vocab_size)[:, None]
    assert torch.allclose(model.score(ids)[:, 0], first, atol=1e-5)
    assert (first.std() < 1e-6) == (bos is None)
    assert first.exp().reciprocal().sum() == pytest.approx(1.0, abs=1e-5)


def test_what_a_state_says_is_what_score_says_across_windows(made: Any) -> None:
    model = load_run(made("llama")).model
    generator = torch.Generator().manual_seed(1)
    tokens_BT = torch.randint(0, model.vocab_size, (3, 61), generator=generator)
    wanted_BT = model.score(tokens_BT)
    logp_BV, state = model.begin(3)
    for t in range(60):
        said_B = -logp_BV.gather(1, tokens_BT[:, t : t + 1])[:, 0]
        assert torch.allclose(said_B, wanted_BT[:, t], atol=1e-4), t
        if t % 7 == 3:  # copies go on as the rows they were copied from
            state = state.select(torch.tensor([0, 1, 2]))
        logp_BV, state = model.advance(tokens_BT[:, t : t + 1], state)
    halves = [model.begin_with(tokens_BT[rows, :60])[1] for rows in (slice(0, 1), slice(1, 3))]
    together = type(halves[0]).concat(halves)
    assert together is not None
    after_BV, _ = model.advance(tokens_BT[:, 60:61], together)
    assert torch.allclose(after_BV, model.begin_with(tokens_BT)[0], atol=1e-4)
    chunked_BV, _ = model.advance(tokens_BT[:, 5:60], model.begin_with(tokens_BT[:, :5])[1])
    assert torch.allclose(chunked_BV, logp_BV, atol=1e-4)


def test_windows_longer_than_a_chunk_go_through_the_cache(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_run(made("llama")).model
    tokens_BT = torch.randint(0, model.vocab_size, (2, 50), generator=torch.Generator().manual_seed(2))
    whole_BT = model.score(tokens_BT)
    monkeypatch.setattr("lmlab.models.huggingface.CHUNK_INPUTS", 10)
    assert torch.allclose(model.score(tokens_BT), whole_BT, atol=1e-4)


@pytest.mark.slow
def test_a_model_that_sees_ahead_gets_no_certificate(made: Any, text: Path) -> None:
    result = lab.evaluate(made("bert"), text)
    assert isinstance(result, Result)
    assert {"causal", "score_is_probability"} <= set(result.certificate.failures)


@pytest.mark.parametrize("backend", [byte_level(normalized=True)], ids=["nfkc"])
def test_a_tokenizer_that_loses_a_byte_gets_no_certificate_and_the_byte_is_named(
    backend: Backend, tmp_path: Path
) -> None:
    folder = folder_of("gpt2", tmp_path / "m", backend)
    before = TEXT.partition("\n")[0] * 6
    (tmp_path / "text.txt").write_text(before + "ﬁ" + before)
    result = lab.evaluate(folder, tmp_path / "text.txt")
    assert isinstance(result, Result)
    assert "lossless" in result.certificate.failures
    details = {check.name: check.detail for check in result.certificate.checks}
    assert f"from byte {len(before.encode())} on" in details["lossless"]


def test_a_unigram_tokenizer_with_bytes_is_lossless(tmp_path: Path, text: Path) -> None:
    folder = folder_of("llama", tmp_path / "m", unigram(), bos="<s>", eos="</s>")
    result = lab.evaluate(folder, text)
    assert isinstance(result, Result)
    assert result.certificate.failures == []


def test_every_verb_that_takes_a_run_takes_the_folder(made: Any, text: Path, tmp_path: Path) -> None:
    folder = made("gpt2")
    small = tmp_path / "small.txt"
    small.write_text(TEXT[:80])
    assert lab.score(folder, "the cat").bits > 0
    (said,) = lab.generate(folder, "the", tokens=30, method="greedy")
    assert said.text
    packed, back = tmp_path / "small.z", tmp_path / "back.txt"
    lab.compress(small, model=folder, out=packed)
    lab.decompress(packed, model=folder, out=back)
    assert back.read_bytes() == small.read_bytes()
    assert lab.count(folder).parameters > 0
    assert lab.explain(folder, str(small))


def test_a_mix_takes_a_folder_beside_a_run_of_the_same_tokens(made: Any, tmp_path: Path) -> None:
    long = tmp_path / "long.txt"
    long.write_text(TEXT * 30)
    folder = load_run(made("gpt2"))
    ngram = lab.train("ngram", long, out=tmp_path / "ngram", tokenizer=folder.tokenizer)
    mixed = lab.mix([folder.folder, ngram], out=tmp_path / "mix")
    assert [part.model for part in mixed.record.inputs.parts] == ["huggingface", "ngram"]
    with mistake("mix-without-text"):
        lab.mix([made("gpt2"), made("llama")], out=tmp_path / "none")


def test_a_mix_that_holds_a_folders_model_comes_back_from_what_it_saves(made: Any) -> None:
    parts = [("huggingface", load_run(made(kind)).model) for kind in FAST]
    mix = Mix.of(parts, {"logits_K": torch.tensor([0.3, -0.2])}, weighting="constant")
    again = Mix.from_tensors(mix.config, mix.vocab_size, mix.tensors())
    tokens_BT = torch.arange(40)[None] * 7
    assert torch.equal(mix.score(tokens_BT), again.score(tokens_BT))


def test_a_folder_is_no_beginning_of_a_training(lmlab: Lmlab, made: Any, text: Path, tmp_path: Path) -> None:
    refused(lmlab("train", "--from", made("gpt2"), text, "--out", tmp_path / "run"), "lmlab import")


def test_without_a_text_there_is_nothing_to_measure(made: Any) -> None:
    with mistake("run-without-text", "name a text"):
        lab.evaluate(made("gpt2"))
