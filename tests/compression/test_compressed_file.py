"""A damaged or foreign file, the wrong model, a machine that computes differently: all refused, in one line."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.compression import compress, decompress
from lmlab.compression.file_format import MAGIC, VERSION, Header, fingerprint, pack, unpack

TEXT = "Damage is noticed before anything is written. 🙂\n"


@pytest.fixture(scope="module")
def pair(make_model):
    return make_model("ngram")


@pytest.fixture(scope="module")
def data(pair):
    return compress(*pair, TEXT)


def refused(pair, data: bytes) -> str:
    with pytest.raises(ValueError) as caught:
        decompress(*pair, data)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_any_changed_byte_is_noticed(pair, data):
    generator = random.Random(0)
    for place in range(len(data)):
        for flip in (1, 0x80, generator.randrange(1, 256)):
            damaged = bytearray(data)
            damaged[place] ^= flip
            line = refused(pair, bytes(damaged))
            assert "damaged" in line


def test_any_cut_is_noticed(pair, data):
    for length in range(len(data)):
        refused(pair, data[:length])


def test_any_addition_is_noticed(pair, data):
    for more in (b"\0", b"\n", b"\xff" * 4, data, bytes(100)):
        refused(pair, data + more)


@pytest.mark.parametrize("foreign", [b"", b"plain text", b"\x1f\x8b\x08\x00", b"PK\x03\x04" * 9, bytes(64)])
def test_a_foreign_file_is_called_foreign(pair, foreign):
    assert "not made by lmlab compress" in refused(pair, foreign)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_noise_after_the_magic_is_refused(noise):
    with pytest.raises(ValueError):
        unpack(MAGIC + noise)


def test_a_later_format_is_named(pair, data):
    assert "format 9" in refused(pair, MAGIC + bytes([9]) + data[4:])


def test_another_model_is_refused_by_its_fingerprint(make_model, data):
    others = [make_model("uniform"), make_model("ngram", order=2), make_model("ngram", "byte")]
    for other in others:
        assert "another model" in refused(other, data)


def test_one_changed_weight_or_setting_makes_another_model(make_model):
    model, tokenizer = make_model("gpt")
    prints = {fingerprint(model, tokenizer)}
    tensors = {name: tensor.clone() for name, tensor in model.tensors().items()}
    tensors["norm"][3] = torch.nextafter(tensors["norm"][3], torch.tensor(9.0))
    prints.add(fingerprint(type(model).from_tensors(model.config, model.vocab_size, tensors), tokenizer))
    prints.add(fingerprint(*make_model("gpt", stride=4)))
    prints.add(fingerprint(*make_model("gpt", "byte")))
    assert len(prints) == 4


@pytest.mark.parametrize("spec", ["char", "words:50"])
@pytest.mark.parametrize("shift", [1e-4, 0.1, 3.0])
def test_other_probabilities_than_the_encoders_never_give_a_text(make_model, held_out, monkeypatch, spec, shift):
    pair = make_model("bag", spec)
    monkeypatch.setattr(type(pair[0]), "portable", False)  # as a network, whose files say who made them
    text = held_out[:600] + " zyzzyva 🙂"
    packed = compress(*pair, text)
    advance = pair[0].advance
    generator = torch.Generator().manual_seed(0)
    noise_V = shift * torch.randn(pair[0].vocab_size, generator=generator)

    def elsewhere(tokens_BT, state):
        logp_BV, state = advance(tokens_BT, state)
        return torch.log_softmax(logp_BV + noise_V, dim=-1), state

    monkeypatch.setattr(pair[0], "advance", elsewhere)
    line = refused(pair, packed)
    assert "come out differently" in line
    assert torch.__version__ in line


def test_a_word_that_never_ends_is_stopped(make_model, monkeypatch):
    pair = make_model("bag", "words:50")
    packed = compress(*pair, "zyzzyva the zyzzyva " * 5)
    asked = []

    def endless(prefix):
        asked.append(prefix)
        p = np.zeros(spelling.symbols_count)
        p[0] = 1.0  # certain, so that no number of symbols uses the bytes up
        return p

    spelling = pair[1].spelling
    monkeypatch.setattr(spelling, "distribution", endless)
    assert "come out differently" in refused(pair, packed)
    assert len(asked) <= 102


def test_impossible_counts_are_refused_though_the_checksum_is_right(pair, data):
    header, streams = unpack(data)
    for changes in ({"tokens": 10**12}, {"tokens": 10**12, "text_bytes": 10}):
        values = {**vars(header), **changes}
        with pytest.raises(ValueError):
            decompress(*pair, pack(Header(**values), streams))
    body = data[:12] + bytes([5, 5, 3, 0x7F, 0x7F, 1, 2])  # three streams, longer than what is there
    with pytest.raises(ValueError, match="damaged"):
        unpack(body + zlib.crc32(body).to_bytes(4, "big"))


@given(
    st.integers(0, 10**9), st.lists(st.binary(max_size=300), min_size=1, max_size=5), st.binary(min_size=4, max_size=4)
)
def test_what_is_packed_is_unpacked(extra, streams, check):
    header = Header(fingerprint=b"1234", text_check=check, text_bytes=extra + 5, tokens=extra + len(streams))
    assert unpack(pack(header, streams)) == (header, streams)


def test_the_frame_takes_a_few_bytes(data):
    _, streams = unpack(data)
    assert len(data) - len(streams[0]) < 24
    assert data[3] == VERSION
