from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from lmlab.compression import compress, decompress
from lmlab.compression.file_format import MAGIC, unpack
from lmlab.compression.portable_exp import exponential
from lmlab.compression.text_codec import in_words, maker
from lmlab.config import Mistake
from thinning import thinned


def test_the_exponential_is_right_to_the_last_bit_or_the_one_before() -> None:
    x = np.concatenate([-np.logspace(-12, 2.8, 400), np.linspace(-40, 0.5, 400), [0.0, -0.0, -700.0, -0.34657359]])
    with localcontext() as context:
        context.prec = 40
        exact = np.array([float(Decimal(float(value)).exp()) for value in x])
    assert (np.abs(exponential(x) - exact) <= np.spacing(exact)).all()


def test_the_exponential_of_the_extremes() -> None:
    found = exponential(np.array([-np.inf, -701.0, np.nan, 0.0]))
    assert found[0] == found[1] == 0.0
    assert np.isnan(found[2])
    assert found[3] == 1.0


def test_the_exponential_has_these_bits_everywhere() -> None:
    x = -(np.arange(100_000, dtype=np.float64) * 0.00037 + np.arange(100_000) % 7)
    digest = hashlib.sha256(exponential(x).astype("<f8").tobytes()).hexdigest()
    assert digest == "05be142242829611a8edca271dece7eaec94ac3c325f8be7f9f44439ba416b19"


SCRIPT = """
import sys
from pathlib import Path
from lmlab.compression import compress
from lmlab.learn.run import load_run
run = load_run(sys.argv[1])
sys.stdout.write(compress(run.model, run.tokenizer, Path(sys.argv[2]).read_text()).hex())
"""


@pytest.mark.parametrize("tokenizer", thinned(["char", "words"], ["words"]))
def test_files_of_models_that_count_are_the_same_on_processors_that_compute_otherwise(
    tokenizer: str, tmp_path: Path, learned: str, held_out: str
) -> None:
    import lmlab

    (tmp_path / "text.txt").write_text(learned)
    (tmp_path / "some.txt").write_text(held_out[:900])
    run = lmlab.train("ngram", tmp_path / "text.txt", out=tmp_path / "run", tokenizer=tokenizer)
    here = compress(run.model, run.tokenizer, held_out[:900])
    with_less = {
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
        "ATEN_CPU_CAPABILITY": "default",
    }
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(run.folder), str(tmp_path / "some.txt")]
    there = subprocess.run(command, env=os.environ | with_less, capture_output=True, text=True, check=True).stdout
    assert bytes.fromhex(there) == here
    assert unpack(here)[0].maker == ""


def test_what_a_network_wrote_says_which_machine_would_open_it(make_model, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    model, tokenizer = make_model("gru")
    data = compress(model, tokenizer, "some text that is long enough to go wrong somewhere " * 3)
    made = unpack(data)[0].maker
    assert made == maker(model)
    assert len(made) < 48
    monkeypatch.setattr("lmlab.compression.text_codec.exponential", lambda x: np.exp(0.9 * x))
    monkeypatch.setattr("lmlab.compression.arithmetic_coder.SUM_TOLERANCE", 10.0)
    with pytest.raises(Mistake) as refused:
        decompress(model, tokenizer, data)
    assert str(refused.value).count(in_words(made)) == 2  # where it was made, and here


def test_files_of_the_first_format_still_open(make_model, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import zlib

    pair = make_model("ngram")
    monkeypatch.setattr("lmlab.compression.text_codec.exponential", np.exp)
    data = compress(*pair, "as it was written before")
    body = data[:-4]
    assert body[12] == 0  # no maker
    first = MAGIC + b"\x01" + body[4:12] + body[13:]
    first += zlib.crc32(first).to_bytes(4, "big")
    monkeypatch.undo()
    assert decompress(*pair, first) == "as it was written before"
