"""Whether bits per byte of targets given their sources are what they claim to be.

    lossless              every target decodes from its tokens, byte for byte, and the tokens stand for its bytes
    each_token_once       every token was scored once, and every end
    normalised            probabilities of all tokens and the end sum to one, and none is above one
    score_is_probability  recorded scores are what a copy from disk says that was shown a source alone and only what came before
    causal                another future leaves earlier scores as they are
    batching              so do other sentences beside it, and the padding that they bring
    hashes                pairs, tokenizer and model are named by SHA-256
    held_out              few sources are copies or near copies of those it was trained on

The places are a sample, drawn by the hash of the pairs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from lmlab.learn.run import Run
from lmlab.measure import Certificate, Check
from lmlab.measure.agreement import NATS_TOLERANCE
from lmlab.measure.certificate import SUM_TOLERANCE
from lmlab.models.translator import Translator
from lmlab.tasks.translation.data import Encoded, Sentences
from lmlab.tasks.translation.decoding import encode, translator_of
from lmlab.text.near_rows import Copied
from lmlab.text.sentence_pairs import Rows
from lmlab.text.tokenizers import Tokenizer

PADDING = 8  # tokens beyond the longest sentence of a batch
ROWS = 24  # that are walked through, in every language


def certify(
    run: Run, copied: Copied, rows: Rows, encoded: Encoded, nats: Sequence[np.ndarray], device: str
) -> Certificate:
    """Check scores. nats: of every language, token by token, ends included, as the ids of `encoded` lie."""
    started, tokenizer = time.perf_counter(), run.tokenizer
    copy = translator_of(Run(run.folder, run.record), device)  # as it is on disk, by itself
    random = np.random.default_rng(int(rows.sha256[:16], 16))
    which = np.sort(random.choice(len(rows), min(ROWS, len(rows)), replace=False))
    walked = [_walk(copy, encoded, which, k) for k in range(1, len(encoded.languages))]
    hashes = {"data": rows.sha256, "tokenizer": tokenizer.hash, "model": str(run.record.model.sha256)}
    checks = (
        _lossless(tokenizer, rows, encoded),
        _each_token_once(encoded, nats),
        _normalised(walked),
        _score_is_probability(encoded, which, nats, walked),
        _causal(copy, encoded, which, nats, random),
        _batching(copy, encoded, which, nats),
        Check("hashes", True, ", ".join(f"{what} {digest[:12]}" for what, digest in hashes.items())),
        _held_out(copied),
    )
    return Certificate(checks, hashes, time.perf_counter() - started)


Walked = tuple[np.ndarray, np.ndarray]  # nats of the tokens of all rows, and the sums of probabilities before each


def _walk(model: Translator, encoded: Encoded, which: np.ndarray, language: int) -> Walked:
    """Token by token, each row alone."""
    sentences, nats, sums = encoded.languages[language], [], []
    for i in which.tolist():
        view = model.given(encode(model, encoded.languages[0], np.array([i])), language - 1)
        logp_BV, state = view.begin(1)
        ids = sentences.ids_N[sentences.starts_B[i] : sentences.starts_B[i + 1]].tolist()
        for id in ids:
            sums.append(float(logp_BV.double().exp().sum()))
            nats.append(-float(logp_BV[0, id]))
            if id != model.end_id:
                logp_BV, state = view.advance(torch.tensor([[id]], device=logp_BV.device), state)
    return np.array(nats), np.array(sums)


def _recorded(encoded: Encoded, which: np.ndarray, nats_N: np.ndarray, language: int) -> np.ndarray:
    starts_B = encoded.languages[language].starts_B
    return np.concatenate([nats_N[starts_B[i] : starts_B[i + 1]] for i in which.tolist()])


def _lossless(tokenizer: Tokenizer, rows: Rows, encoded: Encoded) -> Check:
    wrong, counted = 0, 0
    for language in range(1, len(encoded.languages)):
        sentences = encoded.languages[language]
        for i, text in enumerate(rows.of(language)):
            ids = sentences.ids_N[sentences.starts_B[i] : sentences.starts_B[i + 1] - 1]
            size = int(tokenizer.token_bytes(ids).sum())
            wrong += tokenizer.decode(ids) != text or size != len(text.encode())
            counted += size
    detail = f"tokens stand for {counted} bytes, the targets have {encoded.target_bytes}; {wrong} do not come back"
    return Check("lossless", not wrong and counted == encoded.target_bytes, detail)


def _each_token_once(encoded: Encoded, nats: Sequence[np.ndarray]) -> Check:
    expected = [len(sentences.ids_N) for sentences in encoded.languages[1:]]
    bad = sum(int((~np.isfinite(found) | (found < -SUM_TOLERANCE)).sum()) for found in nats)
    detail = f"{sum(map(len, nats))} scores for {encoded.target_tokens} tokens and ends; {bad} are no probabilities"
    return Check("each_token_once", expected == [len(found) for found in nats] and not bad, detail)


def _normalised(walked: Sequence[Walked]) -> Check:
    sums = np.concatenate([found for _, found in walked])
    detail = f"{len(sums)} sums over all tokens and the end lie in [{sums.min():.8f}, {sums.max():.8f}]"
    return Check("normalised", bool(abs(sums - 1).max() <= SUM_TOLERANCE), detail)


def _score_is_probability(
    encoded: Encoded, which: np.ndarray, nats: Sequence[np.ndarray], walked: Sequence[Walked]
) -> Check:
    gaps = [
        np.abs(_recorded(encoded, which, recorded, k) - alone).max()
        for k, (recorded, (alone, _)) in enumerate(zip(nats, walked, strict=True), start=1)
    ]
    detail = (
        f"the scores of {len(which)} rows in {len(nats)} languages equal, to {max(gaps):.1g} nats, what a copy from disk says"
        " that was shown one source and only what came before"
    )
    return Check("score_is_probability", bool(max(gaps) <= NATS_TOLERANCE), detail)


def _causal(
    model: Translator, encoded: Encoded, which: np.ndarray, nats: Sequence[np.ndarray], random: np.random.Generator
) -> Check:
    """Behind a place in each row other tokens are put; what stands before must cost what it did."""
    worst = 0.0
    for language in range(1, len(encoded.languages)):
        sentences = encoded.languages[language]
        for i in which.tolist():
            ids = sentences.ids_N[sentences.starts_B[i] : sentences.starts_B[i + 1]].copy()
            cut = int(random.integers(1, len(ids) + 1))
            ids[cut:] = random.integers(0, model.vocab_size, len(ids) - cut)
            view = model.given(encode(model, encoded.languages[0], np.array([i])), language - 1)
            found = view.score(torch.from_numpy(ids)[None].to(model.embedding.device))[0, :cut].cpu().numpy()
            first = sentences.starts_B[i]
            worst = max(worst, float(np.abs(found - nats[language - 1][first : first + cut]).max()))
    detail = f"another future moves earlier scores of {len(which)} rows by at most {worst:.1g} nats"
    return Check("causal", worst <= NATS_TOLERANCE, detail)


def _batching(model: Translator, encoded: Encoded, which: np.ndarray, nats: Sequence[np.ndarray]) -> Check:
    """The sampled rows in other company: short beside long, with more padding than the longest needs."""
    by_length = which[np.argsort(encoded.lengths_BL[which].max(axis=1), kind="stable")]
    batches = [part for part in (by_length[::2], by_length[1::2]) if len(part)]
    gaps = []
    for language in range(1, len(encoded.languages)):
        found = scored(model, encoded, batches, language, PADDING)
        recorded = _recorded(encoded, np.concatenate(batches), nats[language - 1], language)
        gaps.append(np.abs(found - recorded).max())
    detail = f"{len(which)} rows in other batches, with more padding, cost what they did, to {max(gaps):.1g} nats"
    return Check("batching", bool(max(gaps) <= NATS_TOLERANCE), detail)


def scored(
    model: Translator, encoded: Encoded, batches: Sequence[np.ndarray], language: int, padding: int = 0
) -> np.ndarray:
    """Nats of the targets of these rows, token by token, in the order of the batches. padding: beyond what is needed."""
    found, device = [], model.embedding.device
    source, target = encoded.languages[0], encoded.languages[language]

    def padded(sentences: Sentences, which: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return sentences.padded(which, len(which), min(model.context, int(sentences.lengths_B[which].max()) + padding))

    for which in batches:
        source_BS, seen_BS = padded(source, which)
        ids_BT, there_BT = padded(target, which)
        view = model.given(model.encode(source_BS.to(device), seen_BS.to(device)), language - 1)
        found.append(view.score(ids_BT.to(device)).cpu()[there_BT].numpy().astype(np.float64))
    return np.concatenate(found)


def _held_out(copied: Copied) -> Check:
    return Check("held_out", copied.is_held_out, str(copied))
