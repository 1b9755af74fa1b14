from __future__ import annotations

from lmlab.comparison.findings import MixedPart, Score, Together


def test_a_mix_names_the_parts_that_weigh_something_and_counts_the_others() -> None:
    def made_of(**weights: float) -> str:
        parts = tuple(MixedPart(name=name, weight=weight) for name, weight in weights.items())
        mix = Together(
            tokenizer="char",
            parts=parts,
            weighting="constant",
            result=Score({"bits_per_byte": 1.4, "certified": True}),
            seconds=1.0,
            best="ngram",
            saved_bits_per_byte=None,
            saved_interval=None,
        )
        return mix.made_of

    assert made_of(lstm=0.15, ngram=0.85) == "ngram 85%, lstm 15%"
    assert made_of(ngram=0.9, gru=0.002, cnn=0.097, rnn=0.001) == "ngram 90%, cnn 10% and 2 with less than 0.5% each"
