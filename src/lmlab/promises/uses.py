"""What decoding and measuring find in a model that keeps its promises. A tiny vocabulary lets all strings be listed."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmlab.engine import generate
from lmlab.interface import LanguageModel
from lmlab.measure import certify, score_part
from lmlab.promises.checks import same
from lmlab.promises.subjects import UNSEEN_TEXT
from lmlab.text.parts import Document, Part
from lmlab.text.tokenizers import Tokenizer

Use = Callable[[LanguageModel, Tokenizer], None]


def check_beam_of_one_is_greedy(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """And greedy takes, at each place, the likeliest token."""
    for prompt in ("", "a b"):
        (greedy,) = generate(model, tokenizer, prompt, method="greedy", max_tokens=12)
        (narrow,) = generate(model, tokenizer, prompt, method="beam", beam_width=1, max_tokens=12)
        assert narrow.ids == greedy.ids, f"a beam of one finds {narrow.ids}, greedy {greedy.ids}"
        nats = _nats_after(model, tokenizer, prompt, torch.tensor([greedy.ids])).sum() + greedy.spelling_nats
        same(torch.tensor(greedy.nats), nats, "greedy decoding counts other nats than score")


def check_measuring_certifies_it(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """Every check of the certificate holds on a text with unknown words, and the number is a number of that text."""
    with tempfile.TemporaryDirectory(prefix="lmlab-") as folder:
        path = Path(folder) / "text.txt"
        path.write_bytes(UNSEEN_TEXT.encode())
        part = Part("test", [Document(path, 0, len(UNSEEN_TEXT.encode()))])
        certificate = certify(model, tokenizer, score_part(model, tokenizer, part))
    assert not certificate.failures, f"not certified: {[c for c in certificate.checks if c.passed is False]}"


# --- only where all strings of three tokens can be listed ---


def all_strings(model: LanguageModel) -> Tensor:
    """All strings of three tokens, N×T."""
    assert model.vocab_size**3 <= 1000, "only tiny vocabularies can be listed"
    return torch.tensor(list(itertools.product(range(model.vocab_size), repeat=3)))


def check_all_strings_of_three_tokens_total_one(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """The probabilities of all strings of one length sum to one: from the beginning, and after a prompt."""
    strings_NT = all_strings(model)
    for prompt in ("", "a b c"):
        total = _nats_after(model, tokenizer, prompt, strings_NT).double().sum(1).neg().exp().sum()
        same(total, torch.tensor(1.0, dtype=torch.float64), f"strings after {prompt!r} do not total one")


def check_a_full_beam_finds_the_best_of_all_strings(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """A beam as wide as there are strings, and exhaustive search, rank all strings as their scores do."""
    strings_NT = all_strings(model)
    spelling, unknown = tokenizer.spelling, tokenizer.unknown_id
    assert spelling is not None, "the tokenizer of all strings has unknown words"
    assert unknown is not None, "the tokenizer of all strings has unknown words"
    unknown_nats = float(spelling.nats(list(spelling.words)).min())
    for prompt in ("", "b a"):
        nats_N = _nats_after(model, tokenizer, prompt, strings_NT).double().sum(1)
        nats_N = nats_N + unknown_nats * (strings_NT == unknown).sum(1)
        expected = nats_N[nats_N.isfinite()].sort().values
        best = min(10, len(expected))
        options: dict[str, Any] = {"max_tokens": 3, "n_best": best, "length_penalty": 0.0}
        beam: dict[str, Any] = {"method": "beam", "beam_width": len(strings_NT)}
        for method in (beam, {"method": "exhaustive"}):
            found = generate(model, tokenizer, prompt, **options, **method)
            same(torch.tensor([f.nats for f in found]).double(), expected[:best], f"{method} misses the best strings")
            assert len({f.ids for f in found}) == best, f"{method} finds a string twice"
            for f in found:
                index = (strings_NT == torch.tensor(f.ids)).all(1).nonzero()[0, 0]
                same(torch.tensor(f.nats).double(), nats_N[index], f"{method} counts other nats than score")


def _nats_after(model: LanguageModel, tokenizer: Tokenizer, prompt: str, strings_NT: Tensor) -> Tensor:
    """Nats of the tokens of each string after the prompt, by `score`."""
    ids_P = torch.tensor(tokenizer.encode(prompt).ids.astype("int64"))
    return model.score(torch.cat([ids_P.expand(len(strings_NT), -1), strings_NT], dim=1))[:, len(ids_P) :]


OF_USING_IT: tuple[Use, ...] = (check_beam_of_one_is_greedy, check_measuring_certifies_it)
OF_ALL_STRINGS: tuple[Use, ...] = (
    check_all_strings_of_three_tokens_total_one,
    check_a_full_beam_finds_the_best_of_all_strings,
)
