"""The n-gram model against a dictionary implementation, exact identities, and published numbers.

The reference below is written from the equations of Chen & Goodman (1999), one n-gram at a time.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.interface import ContextPolicy
from lmlab.models import _ngram_count_by_sorting, _ngram_query, _ngram_smooth
from lmlab.models._ngram_smooth import FALLBACK_DISCOUNTS, discounts
from lmlab.models.ngram import NGram
from lmlab.text.pieces import Vocabulary
from lmlab.text.stream import TokenStream
from thinning import examples

BEGIN = -1


def stream(*documents: Sequence[int]) -> TokenStream:
    ids = np.array([i for d in documents for i in d], dtype=np.uint16)
    starts = np.cumsum([0, *map(len, documents)])
    return TokenStream(ids=ids, starts=starts, bytes=0, chars=0, words=0)


def pieces(vocab_size: int) -> Vocabulary:
    """Token 0 is the line break."""
    return Vocabulary(["\n", *(f"w{i}" for i in range(1, vocab_size))])


def sentences(documents: Sequence[Sequence[int]], restart: str) -> list[list[int]]:
    """The documents, or for restart="line" their lines, each with the begin symbol before it."""
    parts = []
    for document in documents:
        part = [BEGIN]
        for token in document:
            part.append(token)
            if restart == "line" and token == 0:
                parts.append(part)
                part = [BEGIN]
        parts.append(part)
    return parts


class Reference:
    """Kneser-Ney, absolute discounting, Witten-Bell, add-k and maximum likelihood over dictionaries."""

    def __init__(self, documents: Sequence[Sequence[int]], vocab_size: int, order: int, restart: str, **how: object):
        self.V, self.N, self.smoothing, self.k = vocab_size, order, how["smoothing"], how.get("k", 0.0)
        self.counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
        for part in sentences(documents, restart):
            for n in range(1, order + 1):
                for end in range(max(n, 2), len(part) + 1):
                    self.counts[n][tuple(part[end - n : end])] += 1
        self.pruned = {
            gram for n in range(2, order + 1) for gram, c in self.counts[n].items() if c <= how.get("prune", 0)
        }
        if self.smoothing == "absolute":
            self.discounts = [(0.0, 0.0, 0.0)]
            for n in range(1, order + 1):
                n_of = Counter(self.counts[n].values())
                self.discounts.append(3 * (n_of[1] / (n_of[1] + 2 * n_of[2]) if n_of[1] and n_of[2] else 0.5,))
        if self.smoothing == "kneser-ney":
            self.counts = [self._adjusted(n) for n in range(order + 1)]
            self.discounts = [(0.0, 0.0, 0.0)]
            for n in range(1, order + 1):
                n_of = Counter(self.counts[n].values())
                self.discounts.append(discounts(np.array([n_of[c] for c in (1, 2, 3, 4)]))[0])

    def _adjusted(self, n: int) -> Counter[tuple[int, ...]]:
        if n in (0, self.N):
            return self.counts[n]
        preceded_by = Counter(gram[1:] for gram in self.counts[n + 1])
        return Counter({g: c if g[0] == BEGIN else preceded_by[g] for g, c in self.counts[n].items()})

    def p(self, token: int, history: tuple[int, ...]) -> float:
        history = history[max(0, len(history) - (self.N - 1)) :]
        n = len(history) + 1
        after = {g[-1]: c for g, c in self.counts[n].items() if g[:-1] == history}
        total = sum(after.values())
        if self.smoothing == "add-k":
            return (after.get(token, 0) + self.k) / (total + self.k * self.V)
        shorter = 1 / self.V if not history else None
        if not after:
            return shorter if shorter is not None else self.p(token, history[1:])
        if self.smoothing == "ml":
            return after.get(token, 0) / total
        if shorter is None:
            shorter = self.p(token, history[1:])
        cut = {g[-1] for g in self.pruned if g[:-1] == history}
        if self.smoothing == "witten-bell":
            kinds = len(after)
            kept = 0 if token in cut else after.get(token, 0)
            return (kept + (kinds + sum(after[w] for w in cut)) * shorter) / (total + kinds)
        d = (0.0, *self.discounts[n])
        spared = {w: c if w in cut else d[min(c, 3)] for w, c in after.items()}
        gamma = sum(spared.values()) / total
        return (after.get(token, 0) - spared.get(token, 0)) / total + gamma * shorter

    def nats(self, document: Sequence[int], restart: str) -> list[float]:
        out = []
        for part in sentences([document], restart):
            for i in range(1, len(part)):
                p = self.p(part[i], tuple(part[:i]))
                out.append(-math.log(p) if p else math.inf)
        return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int, int, str]:
    """(documents, text to score, vocabulary size, order, restart)."""
    V = draw(st.integers(1, 5))
    token = st.integers(0, V - 1)
    documents = draw(st.lists(st.lists(token, max_size=40), min_size=1, max_size=3))
    text = draw(st.lists(token, min_size=1, max_size=12))
    return documents, text, V, draw(st.integers(1, 5)), draw(st.sampled_from(["line", "never"]))


SMOOTHINGS = ["kneser-ney", "absolute", "witten-bell", "add-k", "ml"]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(case=cases())
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_scores_are_those_of_the_equations(case: tuple, smoothing: str) -> None:
    documents, text, V, order, restart = case
    if smoothing == "ml" and not any(documents):
        documents = [[0]]
    how = {"smoothing": smoothing, "k": 0.3}
    model = NGram.fit(NGram.Config(order=order, restart=restart, **how), pieces(V), stream(*documents))
    wanted = Reference(documents, V, order, restart, **how).nats(text, restart)
    assert model.score(torch.tensor([text]))[0].tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("smoothing", "prune"), [("kneser-ney", 1), ("absolute", 2), ("witten-bell", 1)])
@given(case=cases())
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_what_is_pruned_leaves_its_share_to_shorter_histories(case: tuple, smoothing: str, prune: int) -> None:
    documents, text, V, order, restart = case
    how = {"smoothing": smoothing, "prune": prune}
    model = NGram.fit(NGram.Config(order=order, restart=restart, **how), pieces(V), stream(*documents))
    wanted = Reference(documents, V, order, restart, **how).nats(text, restart)
    assert model.score(torch.tensor([text]))[0].tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    logp, state = model.begin(1)
    for token in text:
        assert float(logp.double().exp().sum()) == pytest.approx(1, abs=1e-5)
        logp, state = model.advance(torch.tensor([[token]]), state)


def test_pruning_makes_a_model_smaller_and_nothing_that_is_left_occurs_so_seldom() -> None:
    documents = [zipf_text(3000, 30, 1)]
    whole, pruned = (
        NGram.fit(NGram.Config(order=3, restart="never", prune=prune), pieces(30), stream(*documents))
        for prune in (0, 1)
    )
    assert pruned.parameters_count < whole.parameters_count / 2
    assert pruned.distinct[0] == whole.distinct[0]
    seen = Counter(zip(documents[0], documents[0][1:], documents[0][2:], strict=False))
    begun = 1  # the trigram that starts with the begin symbol occurs once
    assert whole.distinct[2] == len(seen) + begun
    assert pruned.distinct[2] == sum(c > 1 for c in seen.values())
    assert (whole.config.prune, pruned.config.prune) == (0, 1)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(case=cases())
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_every_conditional_sums_to_one_and_is_what_score_says(case: tuple, smoothing: str) -> None:
    documents, text, V, order, restart = case
    documents = documents if any(documents) else [[0]]
    config = NGram.Config(order=order, restart=restart, smoothing=smoothing)
    model = NGram.fit(config, pieces(V), stream(*documents))
    nats = model.score(torch.tensor([text]))[0]
    logp, state = model.begin(1)
    for i, token in enumerate(text):
        assert float(logp.double().exp().sum()) == pytest.approx(1, abs=1e-5)
        assert float(-logp[0, token]) == float(nats[i])
        logp, state = model.advance(torch.tensor([[token]]), state)


def zipf_text(tokens: int, vocab_size: int, seed: int) -> list[int]:
    """Skewed text with some structure: half of the tokens follow from the one before."""
    rng = np.random.default_rng(seed)
    fresh = np.minimum(rng.zipf(1.3, tokens) - 1, vocab_size - 1)
    text = [0]
    for token, follows in zip(fresh.tolist(), (rng.random(tokens) < 0.5).tolist(), strict=True):
        text.append((7 * text[-1] + token // 4) % vocab_size if follows else token)
    return text


@pytest.fixture(scope="module")
def model() -> NGram:
    return NGram.fit(NGram.Config(order=4, restart="line"), pieces(50), stream(zipf_text(5000, 50, 0)))


def test_the_estimated_discounts_are_used_where_they_exist(model: NGram) -> None:
    """Beside the fallback of tiny texts, the reference is met with real discounts at every order but the first."""
    assert all("discounts (0.5, 1.0, 1.5) at order 1, where" in note for note in model.notes), model.notes
    train, text = zipf_text(5000, 50, 0), zipf_text(60, 50, 1)
    wanted = Reference([train], 50, 4, "line", smoothing="kneser-ney").nats(text, "line")
    assert model.score(torch.tensor([text]))[0].tolist() == pytest.approx(wanted, rel=1e-5)


def test_random_histories_sum_to_one_over_a_large_vocabulary() -> None:
    big = NGram.fit(NGram.Config(order=3), pieces(60_000), stream(zipf_text(3000, 60_000, 2)))
    tokens = torch.tensor([zipf_text(6, 60_000, seed)[:6] for seed in range(20)])
    logp_BV, _ = big.advance(tokens, big.begin(20)[1])
    assert torch.isfinite(logp_BV).all()
    assert logp_BV.double().exp().sum(1).numpy() == pytest.approx(np.ones(20), abs=1e-5)


def test_advancing_at_once_or_one_by_one_is_the_same(model: NGram) -> None:
    tokens = torch.tensor([zipf_text(12, 50, seed) for seed in range(8)])
    at_once, _ = model.advance(tokens, model.begin(8)[1])
    _, state = model.begin(8)
    for t in range(tokens.shape[1]):
        one_by_one, state = model.advance(tokens[:, t : t + 1], state)
    assert torch.equal(at_once, one_by_one)


def test_selecting_rows_commutes_with_advancing(model: NGram) -> None:
    tokens = torch.tensor([zipf_text(5, 50, seed) for seed in range(4)])
    rows = torch.tensor([3, 0, 0, 2, 1])
    _, state = model.begin(4)
    _, after = model.advance(tokens[:, :3], state)
    later, _ = model.advance(tokens[rows, 3:], after.select(rows))
    wanted, _ = model.advance(tokens[rows], model.begin(5)[1])
    assert torch.equal(later, wanted)
    with pytest.raises(RuntimeError, match="advanced already"):
        model.advance(tokens, state)


@pytest.mark.parametrize("smoothing", ["kneser-ney", "add-k", "ml"])
def test_a_single_history_has_the_bits_it_has_among_many(smoothing: str) -> None:
    draw = np.random.Generator(np.random.PCG64(0))
    text = (draw.random(3_000) ** 3 * 20).astype(int).tolist()
    model = NGram.fit(NGram.Config(order=4, smoothing=smoothing), pieces(20), stream(text))
    rows_BT = torch.from_numpy(draw.integers(20, size=(40, 5)))
    together_BV = model.advance(rows_BT, model.begin(40)[1])[0]
    alone_BV = torch.cat([model.advance(row_T[None], model.begin(1)[1])[0] for row_T in rows_BT])
    assert torch.equal(together_BV, alone_BV)


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("restart", ["line", "never"])
def test_one_token_of_one_text_leads_where_it_leads_among_many(order: int, restart: str) -> None:
    model = NGram.fit(NGram.Config(order=order, restart=restart), pieces(20), stream(zipf_text(2000, 20, 0)))
    text, tables = np.array(zipf_text(400, 20, 1)), model.tables
    alone_1N, among_2N = tables.begin(1), tables.begin(2)
    met = set[int]()
    for token in text:
        alone_1N = tables.after(alone_1N, np.array([[token]]))
        among_2N = tables.after(among_2N, np.array([[token], [0]]))
        assert alone_1N[0].tolist() == among_2N[0].tolist()
        met |= set(np.minimum(alone_1N[0], 0).tolist())
    assert order < 5 or met == {_ngram_query.ABSENT, _ngram_query.UNSEEN, 0}


def test_blocks_and_rows_do_not_change_the_score(model: NGram, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = torch.tensor([zipf_text(300, 50, seed) for seed in range(3)])
    whole = model.score(tokens)
    assert torch.equal(whole, torch.cat([model.score(row[None]) for row in tokens]))
    monkeypatch.setattr(_ngram_query, "BLOCK_BITS", 5)
    assert torch.equal(model.score(tokens), whole)


def test_estimating_in_blocks_changes_nothing(model: NGram, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks = _ngram_count_by_sorting.in_blocks
    monkeypatch.setattr(_ngram_count_by_sorting, "in_blocks", lambda size, work: in_blocks(size, work, block=7))
    monkeypatch.setattr(_ngram_smooth, "COUNTED_AT_ONCE", 7)
    for module in (_ngram_count_by_sorting, _ngram_smooth):
        monkeypatch.setattr(module, "BLOCK", 7)
    again = NGram.fit(model.config, pieces(50), stream(zipf_text(5000, 50, 0)))
    assert all(torch.equal(value, again.tensors()[name]) for name, value in model.tensors().items())


def test_saving_and_loading_is_exact(model: NGram) -> None:
    tensors = {name: value.clone() for name, value in model.tensors().items()}
    again = NGram.from_tensors(NGram.Config(restart="line"), model.vocab_size, tensors)
    tokens = torch.tensor([zipf_text(300, 50, 3)])
    assert torch.equal(again.score(tokens), model.score(tokens))
    assert again.notes == model.notes
    assert again.config == model.config
    assert again.policy == ContextPolicy.last(3)


def test_the_first_token_of_a_line_does_not_see_the_line_before(model: NGram) -> None:
    one, other = [5, 6, 0, 1, 2, 3], [9, 8, 7, 0, 1, 2, 3]
    a, b = model.score(torch.tensor([one]))[0], model.score(torch.tensor([other]))[0]
    assert torch.equal(a[3:], b[4:])
    assert torch.equal(a[3:], model.score(torch.tensor([[1, 2, 3]]))[0])


def test_the_conditionals_sum_to_one_only_without_the_final_token() -> None:
    text = [1, 2, 1, 2, 1]
    model = NGram.fit(NGram.Config(order=2, smoothing="ml"), pieces(3), stream(text))
    p_after_1 = model.advance(torch.tensor([[1]]), model.begin(1)[1])[0].exp()[0]
    assert p_after_1.tolist() == [0, 0, 1]
    with_final_token = [Counter(pairwise(text))[1, w] / text.count(1) for w in range(3)]
    assert sum(with_final_token) == pytest.approx(2 / 3)  # the mistake: the last 1 was followed by nothing


def test_maximum_likelihood_says_inf_and_never_nan() -> None:
    model = NGram.fit(NGram.Config(order=3, smoothing="ml"), pieces(4), stream([1, 2, 1, 2]))
    nats = model.score(torch.tensor([[1, 3, 1, 2, 2, 3]]))
    assert not torch.isnan(nats).any()
    assert torch.isinf(nats[0, 1])
    assert nats[0, 0] == 0
    assert "infinitely" in model.notes[0]


@pytest.mark.parametrize("smoothing", ["kneser-ney", "add-k"])
@pytest.mark.parametrize(
    ("documents", "vocab_size", "order"),
    [
        ([[]], 3, 3),
        ([], 3, 2),
        ([[2]], 3, 5),
        ([[1] * 50], 2, 4),
        ([[0] * 7], 1, 3),
        ([[0, 0], [], [0]], 1, 1),
        ([[1, 2, 3]], 50_000, 12),
        ([list(range(100))], 100, 5),
    ],
)
def test_degenerate_text_gives_a_proper_distribution(
    documents: list[list[int]], vocab_size: int, order: int, smoothing: str
) -> None:
    config = NGram.Config(order=order, smoothing=smoothing)
    model = NGram.fit(config, pieces(vocab_size), stream(*documents))
    logp, state = model.begin(1)
    for token in (0, vocab_size - 1, 0):
        assert torch.isfinite(logp).all()
        assert float(logp.double().exp().sum()) == pytest.approx(1, abs=1e-5)
        logp, state = model.advance(torch.tensor([[token]]), state)
    tokens_BT = torch.tensor([[0, vocab_size - 1, 0]] * 2)
    assert torch.isfinite(model.score(tokens_BT)).all()
    at_once_BV, _ = model.advance(tokens_BT, model.begin(2)[1])
    assert torch.equal(at_once_BV, logp.expand(2, -1))


def test_no_tokens_score_to_no_nats(model: NGram) -> None:
    assert model.score(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0)


def test_discounts_follow_chen_and_goodman() -> None:
    n1, n2, n3, n4 = 100, 40, 20, 12
    y = n1 / (n1 + 2 * n2)
    wanted = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    got, why = discounts(np.array([n1, n2, n3, n4]))
    assert got == pytest.approx(wanted)
    assert why == ""


@pytest.mark.parametrize("row", [[0, 0, 0, 0], [5, 0, 1, 1], [5, 4, 0, 0], [1, 1, 9, 1], [9, 9, 1, 9]])
def test_a_discount_that_is_undefined_or_out_of_range_is_replaced_and_reported(row: list[int]) -> None:
    got, why = discounts(np.array(row))
    assert got == FALLBACK_DISCOUNTS
    assert why
    config = NGram.Config(order=2)
    (note,) = NGram.fit(config, pieces(3), stream([1, 2])).notes  # one, however many orders there are
    assert "at order 1, 2" in note


def test_words_begin_afresh_at_each_line_and_other_tokens_do_not() -> None:
    text = stream([1, 2, 0, 1])
    for words, order, restart in [(True, 5, "line"), (False, None, "never")]:
        config = NGram.fit(NGram.Config(), Vocabulary(["\n", "a", "b"], words=words), text).config
        assert config.restart == restart
        assert config.order == order or order is None


def test_the_order_of_other_tokens_is_as_long_as_held_out_text_asks_for() -> None:
    rng = np.random.default_rng(0)
    independent = rng.choice(4, size=20_000, p=[0.5, 0.3, 0.15, 0.05])
    third = [0, 0, 1]
    for u in rng.random(20_000):  # each symbol is the sum of the two before the last one, or sometimes not
        third.append((third[-2] + third[-3]) % 3 if u < 0.8 else int(u * 1000) % 3)
    assert NGram.fit(NGram.Config(), pieces(4), stream(independent.tolist())).config.order == 1
    assert NGram.fit(NGram.Config(), pieces(3), stream(third)).config.order == 4
    assert NGram.fit(NGram.Config(), pieces(3), stream([1, 2] * 10)).config.order == 5


def test_a_text_that_memory_cannot_hold_is_refused_at_once() -> None:
    ids = np.broadcast_to(np.uint16(0), 10**12)
    endless = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=0, chars=0, words=0)
    with pytest.raises(ValueError, match="GB of memory"):
        NGram.fit(NGram.Config(), pieces(3), endless)


@pytest.mark.parametrize(
    "settings_",
    [
        {"order": 0},
        {"smoothing": "katz"},
        {"restart": "page"},
        *({"k": k} for k in (0.0, float("inf"), 1e308, 1e-320)),
    ],
)
def test_impossible_settings_are_refused(settings_: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="ngram"):
        NGram.Config(**settings_)


def data(*path: str) -> Path:
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder:
        pytest.skip("LMLAB_BENCH_DATA is not set: the real texts are not here")
    return Path(folder, *path)


def ptb(part: str) -> list[str]:
    lines = data("ptb", f"ptb.{part}.txt").read_text(encoding="utf-8").splitlines()
    return [word for line in lines for word in (*line.split(), "\n")]


def test_penn_treebank_perplexity_is_the_published_one() -> None:
    """141.2 for interpolated Kneser-Ney, order 5: closed vocabulary, line end counted, sentences begin afresh."""
    train, test = ptb("train"), ptb("test")
    id_of = {word: i for i, word in enumerate(sorted(set(train)))}
    assert len(id_of) == 10_000  # 9,999 words, `<unk>` among them, and the line end; the begin symbol is not predicted
    model = NGram.fit(NGram.Config(), Vocabulary(list(id_of), words=True), stream([id_of[w] for w in train]))
    nats = model.score(torch.tensor([[id_of[w] for w in test]])).double()
    assert f"{math.exp(float(nats.mean())):.1f}" == "141.2"
    assert model.notes == []


def test_tinyshakespeare_characters_cost_what_an_independent_count_found() -> None:
    """1.5165 nats per character: order 7, first 90% to train, last 10% scored from its beginning."""
    text = data("tinyshakespeare", "input.txt").read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    ids = [alphabet.index(c) for c in text]
    cut = len(ids) * 9 // 10
    model = NGram.fit(NGram.Config(order=7), Vocabulary(alphabet), stream(ids[:cut]))
    nats = model.score(torch.tensor([ids[cut:]])).double()
    assert float(nats.mean()) == pytest.approx(1.5165, abs=0.0005)
