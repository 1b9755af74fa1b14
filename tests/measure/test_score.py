from __future__ import annotations

import math
from pathlib import Path

import measure_models as planted
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmlab.interface import ContextPolicy
from lmlab.measure import Scored, certify, roundtrip, score_part, tally
from lmlab.measure import score as scoring
from lmlab.models.bag import Bag, BagConfig
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.models.ngram import NGram, NGramConfig
from lmlab.models.uniform import Uniform, UniformConfig
from lmlab.text.markov import SYMBOLS, MarkovSpec, generate, markov_entropy, transitions
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake
from thinning import examples

SPECS = ["byte", "char", "words", "words:8", "bpe:300"]


def by_hand(model: planted.Chain, text: str) -> tuple[list[float], list[float]]:
    """Nats of each token by begin and advance, one token at a time, and the nats of spellings."""
    ids, spellings = model.tokenizer.encode(text)
    logp, state = model.begin(1)
    nats = []
    for id in ids.tolist():
        nats.append(-float(logp[0, id]))
        logp, state = model.advance(torch.tensor([[id]]), state)
    spelling = model.tokenizer.spelling
    return nats, [] if spelling is None else spelling.nats(spellings).tolist()


@pytest.mark.parametrize("vocab", ["byte", "char", "bpe:300"])
def test_the_uniform_model_costs_exactly_log2_v_bits_a_token(vocab: str, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for(vocab)
    scored = score_part(
        Uniform(UniformConfig(), tokenizer.vocab_size), tokenizer, planted.part_of(tmp_path, planted.some_text(500))
    )
    bits_per_token = scored.total_nats / math.log(2) / scored.tokens
    assert bits_per_token == pytest.approx(math.log2(tokenizer.vocab_size), rel=1e-7)  # log V rounded to float32
    assert scored.bits_per_byte == pytest.approx(bits_per_token * scored.tokens / scored.bytes, rel=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_the_total_is_the_sum_over_documents_of_single_steps_and_spellings(spec: str, tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for(spec))
    texts = [planted.some_text(40, rare=True), "", "é🙂 new\n\n wörds ", "a", planted.some_text(30, seed=3), "b"]
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, *texts))
    counted = [by_hand(model, text) for text in texts]
    model_nats = math.fsum(n for nats, _ in counted for n in nats)
    spelling_nats = math.fsum(n for _, nats in counted for n in nats)
    assert scored.model_nats == pytest.approx(model_nats, rel=1e-9)
    assert scored.spelling_nats == pytest.approx(spelling_nats, rel=1e-9, abs=0)
    assert scored.total_nats == pytest.approx(model_nats + spelling_nats, rel=1e-9)
    assert scored.unknown_tokens == sum(len(nats) for _, nats in counted)
    assert float(scored.nats_per_token.sum(dtype=np.float64)) == pytest.approx(scored.total_nats, rel=1e-6)
    assert scored.bytes == sum(len(text.encode()) for text in texts)
    assert scored.chars == sum(map(len, texts))
    assert scored.words == sum(len(text.split()) for text in texts)


@pytest.mark.parametrize("spec", SPECS)
def test_byte_ends_say_where_each_token_of_the_text_ends(spec: str, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for(spec)
    text = "the cat, né\n\n  zyxab the\tdog \n"
    scored = score_part(planted.Chain.random(tokenizer), tokenizer, planted.part_of(tmp_path, text))
    ids, spellings = tokenizer.encode(text)
    assert scored.byte_ends[-1] == len(text.encode())
    assert np.diff(scored.byte_ends, prepend=0).tolist() == tokenizer.token_bytes(ids, spellings).tolist()


TEXTS = st.lists(st.text(st.sampled_from("the catdog \n\té🙂"), max_size=60), min_size=1, max_size=4)


@given(texts=TEXTS, spec=st.sampled_from(SPECS), piece=st.integers(1, 9))
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_of_any_size_give_the_same_bytes_spellings_and_text(
    texts: list[str], spec: str, piece: int, tmp_path: Path
) -> None:
    model = CHAINS.setdefault(spec, planted.Chain.random(planted.tokenizer_for(spec)))
    part = planted.part_of(tmp_path, *texts, "x")  # never empty
    whole = score_part(model, model.tokenizer, part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "PIECE_TOKENS", piece)
        patch.setattr(tally, "PIECE_TOKENS", piece)
        patch.setattr(roundtrip, "PIECE_TOKENS", piece)
        patch.setattr(roundtrip, "LOOK_BACK", 2)
        cut = score_part(model, model.tokenizer, part)
        trip = roundtrip.round_trip(model.tokenizer, part, cut.stream)
    assert trip.first_difference is None
    assert (trip.bytes_read, trip.sha256) == (part.bytes, part.sha256)
    assert_same(whole, cut)


CHAINS: dict[str, planted.Chain] = {}


def assert_same(whole: Scored, cut: Scored) -> None:
    assert np.array_equal(whole.byte_ends, cut.byte_ends)
    assert np.allclose(whole.nats_per_token, cut.nats_per_token, rtol=1e-5, atol=1e-5)
    for name in ("tokens", "unknown_tokens", "fallback_tokens", "unspelled_tokens", "closed_tokens", "closed_unknown"):
        assert getattr(whole, name) == getattr(cut, name), name
    for name in ("total_nats", "spelling_nats", "closed_nats", "known_nats"):
        assert getattr(whole, name) == pytest.approx(getattr(cut, name), rel=1e-6), name
    assert cut.seam_difference < 1e-4


def test_a_long_document_in_pieces_costs_what_it_costs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = planted.tokenizer_for("char")
    train = tokenize(planted.part_of(tmp_path, planted.some_text(3000, seed=1), name="train"), tokenizer, tmp_path)
    part = planted.part_of(tmp_path, planted.some_text(400))
    torch.manual_seed(0)
    models = [NGram.fit(NGramConfig(order=order), tokenizer.vocabulary, train) for order in (1, 2, 5)]
    models += [
        GPT(GPTConfig(layers=1, width=16, heads=1, context=c, stride=s, tie=True, dropout=0.0), tokenizer.vocab_size)
        for c, s in ((16, 8), (16, 5), (12, 12), (7, 1))
    ]
    for model in models:
        whole = score_part(model, tokenizer, part)
        monkeypatch.setattr(scoring, "PIECE_TOKENS", 137)
        cut = score_part(model, tokenizer, part)
        monkeypatch.undo()
        assert (whole.seams, cut.seams) == (0, math.ceil(cut.tokens / 137) - 1)
        assert_same(whole, cut)


def test_a_model_of_unbounded_history_gets_a_long_document_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "PIECE_TOKENS", 50)
    model = planted.Chain.random(planted.tokenizer_for("char"))
    model.policy = ContextPolicy.everything()
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, planted.some_text(100)))
    assert scored.spans.tolist() == [[0, scored.tokens]]


def test_batches_hold_documents_of_like_length_and_each_document_once() -> None:
    lengths = np.random.default_rng(0).integers(0, 300, size=500)
    batches = list(scoring.batches(lengths, 1000))
    assert sorted(np.concatenate(batches).tolist()) == np.flatnonzero(lengths).tolist()
    for batch in batches:
        chosen = lengths[batch]
        assert len(batch) == 1 or len(batch) * chosen.max() <= 1000
        assert chosen.max() <= 1.25 * chosen.min() + 16


def test_the_context_policy_says_which_tokens_a_prediction_sees() -> None:
    assert ContextPolicy.last(1).to_json() == {
        "history": 1,
        "stride": 1,
        "documents": "each begins afresh",
        "rule": "every token sees at most the last 1 tokens of its document",
    }
    assert str(ContextPolicy.nothing()) == "no token sees another"
    assert str(ContextPolicy.everything()) == "every token sees all tokens of its document before it"
    windows = ContextPolicy.windows(16, 8)
    assert str(windows).startswith("every token sees the 8 to 15 tokens of its document before it")
    assert (windows.most, ContextPolicy.last(2).most, ContextPolicy.nothing().most) == (15, 2, 0)
    assert ContextPolicy.everything().most is None
    assert [windows.resume(p) for p in (0, 15, 16, 23, 24, 31, 32)] == [0, 0, 8, 8, 16, 16, 24]
    last_two = ContextPolicy.last(2)
    assert [last_two.resume(p) for p in (0, 2, 3, 9)] == [0, 0, 1, 7]


def test_the_closed_vocabulary_counts_words_and_line_ends_and_no_spelling(tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for("words"))
    text = "the cat  zyxwv\n\n\tdog unheard\n"
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, text))
    nats, _ = by_hand(model, text)
    ids, spellings = model.tokenizer.encode(text)
    words = iter(spellings)
    strings = [next(words) if id == model.tokenizer.unknown_id else model.tokenizer.piece(id) for id in ids.tolist()]
    counted = [s != "" and ("\n" in s or not s[0].isspace()) for s in strings]
    assert [s for s, c in zip(strings, counted, strict=True) if not c] == ["  ", "\t"]
    assert scored.closed_tokens == 5 + 3  # words and line ends
    assert scored.closed_unknown == 2
    assert scored.closed_nats == pytest.approx(sum(n for n, c in zip(nats, counted, strict=True) if c), rel=1e-6)
    known = [c and id != model.tokenizer.unknown_id for id, c in zip(ids.tolist(), counted, strict=True)]
    assert scored.known_nats == pytest.approx(sum(n for n, k in zip(nats, known, strict=True) if k), rel=1e-6)
    assert scored.unknown_tokens == 4  # the two runs of whitespace are not in the vocabulary either


def test_impossible_tokens_cost_infinitely_much_and_are_counted(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    train = tokenize(planted.part_of(tmp_path, "the cat", name="train"), tokenizer, tmp_path)
    scored = score_part(
        Bag.fit(BagConfig(smoothing="ml"), tokenizer.vocabulary, train),
        tokenizer,
        planted.part_of(tmp_path, "the dogs"),
    )
    assert scored.total_nats == math.inf
    assert scored.impossible_tokens == 4


def test_an_empty_part_is_refused_in_one_line(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("byte")
    model = Uniform(UniformConfig(), tokenizer.vocab_size)
    with mistake("nothing-to-measure"):
        score_part(model, tokenizer, planted.part_of(tmp_path, ""))


def test_progress_tells_of_tokenising_and_then_of_scoring(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    part = planted.part_of(tmp_path, "the cat\n" * 30, "a dog\n")
    tokenizer = planted.tokenizer_for("char")
    model = Uniform(UniformConfig(), tokenizer.vocab_size)
    scored = score_part(model, tokenizer, part, progress=lambda *said: heard.append(said))
    assert heard[0][0] == "tokenise"
    assert heard[-1] == ("score", scored.tokens, scored.tokens)
    assert [stage for stage, _, _ in heard] == sorted((stage for stage, _, _ in heard), reverse=True)


def test_token_files_are_kept_where_they_are_asked_for_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = planted.tokenizer_for("char")
    model = Uniform(UniformConfig(), tokenizer.vocab_size)
    part = planted.part_of(tmp_path, "the cat\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    scored = score_part(model, tokenizer, part)
    assert len(list(temporary.iterdir())) == 1
    assert certify(model, tokenizer, scored).failures == []
    del scored
    assert list(temporary.iterdir()) == []
    score_part(model, tokenizer, part, folder=tmp_path / "kept")
    assert list((tmp_path / "kept").glob("test-*/ids.bin"))
    assert list(temporary.iterdir()) == []


def test_long_results_lie_in_files_that_need_no_clearing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = planted.Chain.random(planted.tokenizer_for("char"))
    part = planted.part_of(tmp_path, planted.some_text(300))
    inside = score_part(model, model.tokenizer, part)
    monkeypatch.setattr(scoring, "IN_MEMORY", 10)
    mapped = score_part(model, model.tokenizer, part, folder=tmp_path)
    assert isinstance(mapped.nats_per_token, np.memmap)
    assert np.array_equal(inside.nats_per_token, mapped.nats_per_token)
    assert np.array_equal(inside.byte_ends, mapped.byte_ends)
    assert certify(model, model.tokenizer, mapped).failures == []


def chain_of(spec: MarkovSpec) -> planted.Chain:
    """The model that knows a first-order source: its transitions, over the letters of a `char` tokenizer."""
    letters = SYMBOLS[: spec.alphabet]
    tokenizer = train_tokenizer("char", [letters])
    ids = [int(tokenizer.encode(letter).ids[0]) for letter in letters]
    logp_NV = np.full((tokenizer.vocab_size + 1, tokenizer.vocab_size), -np.inf)
    logp_NV[np.ix_(ids, ids)] = np.log(transitions(spec))
    logp_NV[-1, ids] = -math.log(len(ids))
    unreached = np.isinf(logp_NV).all(axis=1)
    logp_NV[unreached] = -math.log(tokenizer.vocab_size)
    return planted.Chain(tokenizer, logp_NV)


def test_the_model_that_knows_the_source_costs_its_entropy(tmp_path: Path) -> None:
    inside = 0
    for seed in range(20):
        spec = MarkovSpec(order=1, alphabet=4, length=20_000, seed=seed)
        model = chain_of(spec)
        part = planted.part_of(tmp_path, b"".join(generate(spec)).decode())
        scored = score_part(model, model.tokenizer, part)
        interval = scoring_interval(scored)
        truth = markov_entropy(spec)
        assert abs(scored.bits_per_byte - truth) < 0.02
        inside += interval[0] <= truth <= interval[1]
    assert inside >= 17  # 19 of 20 are expected; fewer than 17 has a probability of 0.016


def scoring_interval(scored: Scored) -> tuple[float, float]:
    from lmlab.measure.interval import interval

    found = interval(scored)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_no_model_goes_below_the_entropy_by_more_than_its_interval(tmp_path: Path) -> None:
    spec = MarkovSpec(order=2, alphabet=4, length=120_000, seed=3)
    text = b"".join(generate(spec)).decode()
    truth = markov_entropy(spec)
    tokenizer = train_tokenizer("char", [text[:1000]])
    train = tokenize(planted.part_of(tmp_path, text[:80_000], name="train"), tokenizer, tmp_path)
    test = planted.part_of(tmp_path, text[80_000:])
    excess = {}
    for order in (1, 2, 3, 4, 5):
        scored = score_part(NGram.fit(NGramConfig(order=order), tokenizer.vocabulary, train), tokenizer, test)
        low, high = scoring_interval(scored)
        excess[order] = scored.bits_per_byte - truth
        assert scored.bits_per_byte + (high - low) / 2 > truth
    assert abs(excess[3]) < 0.02  # the order of the source: two letters of history
    assert excess[1] > excess[2] > 0.05  # too little history
