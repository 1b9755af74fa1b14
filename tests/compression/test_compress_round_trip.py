"""Every model: the text comes back byte for byte, and the file is as small as the model claims."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.compression import claimed_bits, compress, compressed_bits, decompress
from lmlab.text.tokenizers import train_tokenizer
from thinning import examples

STRANGE = [
    "",
    "a",
    "\n",
    " ",
    "é",
    "🙂",
    "\0",
    "no line end",
    "crlf\r\n\r\nand tabs\t\t.",
    "words nobody knows: floccinaucinihilipilification 𓀀 zß水🍌 \u2028 e\u0301 \ufeff x",
    "  spaces  before,   between \n and after  \n\n ",
]


def sized(pair, text: str) -> tuple[int, float]:
    data = compress(*pair, text)
    assert decompress(*pair, data) == text
    return 8 * len(data), claimed_bits(*pair, text)


def test_every_model_compresses_to_what_it_claims(model_name, make_model, held_out):
    pair = make_model(model_name)
    bits, claimed = sized(pair, held_out[:1000])
    head = 8 * len(compress(*pair, ""))  # for who made it
    assert 0.99 * claimed <= bits - head <= 1.01 * claimed


def test_every_model_brings_strange_texts_back(model_name, make_model):
    pair = make_model(model_name)
    assert [decompress(*pair, compress(*pair, text)) for text in STRANGE] == STRANGE


@pytest.mark.parametrize("spec", ["byte", "bpe:500", "words", "words:50"])
def test_every_tokenizer_pays_what_is_claimed_spelling_included(make_model, held_out, spec):
    text = held_out[:1500] + " Übermut 🙂🙃 zzzz"
    bits, claimed = sized(make_model("ngram", spec), text)
    assert 0.99 * claimed <= bits <= 1.01 * claimed + 8 * 24


@pytest.mark.parametrize("spec", ["byte", "bpe:500", "words"])
def test_every_tokenizer_brings_strange_texts_back(make_model, spec):
    pair = make_model("ngram", spec)
    assert [decompress(*pair, compress(*pair, text)) for text in STRANGE] == STRANGE


@pytest.mark.parametrize("name", ["uniform", "ngram"])
@settings(deadline=None, max_examples=examples(40))
@given(text=st.text(max_size=60))
def test_any_text_comes_back(make_model, name, text):
    pair = make_model(name)
    assert decompress(*pair, compress(*pair, text)) == text


@settings(deadline=None, max_examples=examples(15))
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \n the"), max_size=12))
def test_any_text_comes_back_in_words(make_model, text):
    pair = make_model("bag", "words:50")
    assert decompress(*pair, compress(*pair, text)) == text


def test_a_uniform_model_takes_the_logarithm_of_its_vocabulary(make_model):
    pair = make_model("uniform", "byte")
    text = "abcdefgh" * 500
    assert claimed_bits(*pair, text) == pytest.approx(8 * len(text), rel=1e-6)
    assert 8 * len(text) <= compressed_bits(*pair, text) <= 8 * (len(text) + 24)


def test_what_a_model_holds_impossible_comes_back_too(make_model):
    pair = make_model("ngram", smoothing="ml", order=3)
    text = "qqqqzzzz impossible"
    assert math.isinf(claimed_bits(*pair, text))
    assert decompress(*pair, compress(*pair, text)) == text


@pytest.mark.parametrize("spec", ["char", "words"])
@pytest.mark.parametrize("streams", [2, 7, 10_000])
def test_streams_bring_the_text_back_and_cost_something(make_model, held_out, spec, streams):
    pair = make_model("ngram", spec)
    text = held_out[:150] + " 🙂 zzz"
    data = compress(*pair, text, streams=streams)
    assert decompress(*pair, data) == text
    assert len(data) > len(compress(*pair, text))


def test_streams_agree_for_a_neural_model(make_model, held_out):
    pair = make_model("gpt")
    text = held_out[:1001]
    data = compress(*pair, text, streams=8)
    assert decompress(*pair, data) == text
    assert len(data) < 1.3 * len(compress(*pair, text))


def test_no_streams_are_refused(make_model):
    with pytest.raises(ValueError, match="from 1 up"):
        compress(*make_model("uniform"), "text", streams=0)


def test_dropout_and_threads_change_nothing_and_are_put_back(make_model, held_out):
    pair = make_model("gpt", dropout=0.5)
    model, threads = pair[0], torch.get_num_threads()
    try:
        model.train()
        torch.set_num_threads(2)
        data = compress(*pair, held_out[:200])
        assert model.training
        assert torch.get_num_threads() == 2
        model.eval()
        torch.set_num_threads(1)
        assert decompress(*pair, data) == held_out[:200]
    finally:
        model.eval()
        torch.set_num_threads(threads)


def test_a_saved_and_loaded_model_opens_what_the_original_made(make_model, held_out):
    for name in ("ngram", "gpt"):
        model, tokenizer = make_model(name)
        tensors = {key: tensor.clone() for key, tensor in model.tensors().items()}
        again = type(model).from_tensors(model.config, model.vocab_size, tensors)
        assert decompress(again, tokenizer, compress(model, tokenizer, held_out[:300])) == held_out[:300]


def test_progress_counts_every_token(make_model):
    pair, seen = make_model("ngram"), []
    compress(*pair, "abcdefg", streams=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 7), (4, 7), (6, 7), (7, 7)]


def test_half_a_surrogate_pair_is_refused(make_model):
    with pytest.raises(ValueError, match="surrogate"):
        compress(*make_model("uniform"), "ab\ud800")


def test_a_broken_model_is_told_apart_from_a_broken_file(make_model, monkeypatch):
    pair = make_model("bag")
    monkeypatch.setattr(pair[0], "logp_V", torch.full_like(pair[0].logp_V, torch.nan))
    with pytest.raises(ValueError, match="the model is broken"):
        compress(*pair, "text")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["char", "words"])
def test_twenty_kilobytes_held_out_after_training(model_name, spec, tmp_path, monkeypatch):
    from lmlab.learn.mixing import mix
    from lmlab.learn.train import train
    from lmlab.text.corpus import read

    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    corpus = read("python-docs")
    runs = [
        train(name, corpus, out=tmp_path / name, tokenizer=spec, budget="5s", device="cpu")
        for name in (("ngram", "lstm") if model_name == "mix" else (model_name,))
    ]
    run = mix(runs, out=tmp_path / "mix") if model_name == "mix" else runs[0]
    text = corpus.test.text()[:20_000]
    for slice_ in (text, text[:2_000] + " unséen 🙂 wordz without a line end"):
        bits, claimed = sized((run.model, run.tokenizer), slice_)
        assert 0.9995 * claimed <= bits <= 1.0005 * claimed + 8 * 64


def test_tokenizers_of_other_texts_work_as_well():
    from lmlab.models.uniform import Uniform

    tokenizer = train_tokenizer("words", ["a b\na b\n"])
    pair = Uniform(Uniform.Config(), tokenizer.vocab_size), tokenizer
    assert decompress(*pair, compress(*pair, "a c b\n\n")) == "a c b\n\n"


def test_a_spelling_rounded_to_probability_zero_can_still_be_sent(make_model, monkeypatch):
    pair = make_model("bag", "words:50")
    spelling = pair[1].spelling
    distribution, z = spelling.distribution, spelling.symbols("z")[0]

    def without_z(prefix):
        p = distribution(prefix)
        p[z] = 0.0
        return p / p.sum()

    monkeypatch.setattr(spelling, "distribution", without_z)
    assert decompress(*pair, compress(*pair, "zyzzyva the fuzz")) == "zyzzyva the fuzz"
