"""The autoencoder: gradients by hand against autograd, trained by the loop, killed and resumed, and used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import lmlab
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.models.autoencoder import Autoencoder, AutoencoderConfig, LabelledPairs
from lmlab.models.autoencoder_by_hand import gradients
from lmlab.models.glove import GloVe
from lmlab.tasks.word_pairs.measure import CombiningResult
from mistakes import mistake


def model_in_double() -> tuple[Autoencoder, LabelledPairs]:
    torch.manual_seed(0)
    model = Autoencoder(AutoencoderConfig(labels=3, width=4, parent=5), 9).double()
    model.take_vectors(torch.randn(9, 4).double())
    return model, LabelledPairs(torch.randint(9, (7, 2)), torch.randint(3, (7,)))


def test_gradients_by_hand_are_those_of_autograd() -> None:
    model, batch = model_in_double()
    x_NX2 = model.inputs(batch.words_B2)
    h_NP = model.encoder(x_NX2)
    h_NP.retain_grad()
    p_NP = torch.relu(h_NP)
    p_NP.retain_grad()
    (0.5 * (model.decoder(p_NP) - x_NX2).square().sum()).backward()
    named = {"w1": model.encoder, "w2": model.decoder, "w3": model.output}
    weights = {name: layer.weight.detach().numpy() for name, layer in named.items()}
    weights |= {name.replace("w", "b"): layer.bias.detach().numpy() for name, layer in named.items()}
    found = gradients(x_NX2.numpy(), batch.labels_B.numpy(), weights)
    assert p_NP.grad is not None
    assert h_NP.grad is not None
    np.testing.assert_allclose(found["delta1"], p_NP.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(found["delta2"], h_NP.grad.numpy(), atol=1e-12)
    model.zero_grad()
    model.loss(batch).total.backward()
    for name, layer in named.items():
        assert layer.weight.grad is not None
        np.testing.assert_allclose(found[name], layer.weight.grad.numpy(), atol=1e-12, err_msg=name)
        np.testing.assert_allclose(found[name.replace("w", "b")], layer.bias.grad.numpy(), atol=1e-12)


def test_the_loss_is_the_quizs_and_tells_its_parts() -> None:
    model, batch = model_in_double()
    loss = model.loss(batch)
    p_NP = torch.relu(model.inputs(batch.words_B2) @ model.encoder.weight.T + model.encoder.bias)
    back = p_NP @ model.decoder.weight.T + model.decoder.bias
    j1 = 0.5 * ((back - model.inputs(batch.words_B2)) ** 2).sum()
    logits = p_NP @ model.output.weight.T + model.output.bias
    j2 = -torch.log_softmax(logits, 1)[torch.arange(7), batch.labels_B].sum()
    torch.testing.assert_close(loss.parts["reconstruction"], j1)
    torch.testing.assert_close(loss.parts["label"], j2)
    torch.testing.assert_close(loss.total, j1 + j2)
    assert loss.count == 7


def test_word_vectors_have_length_one_and_are_not_learned(of_table: Run, table: tuple[Path, Path]) -> None:
    kept = of_table.saved.tensors()["embedding_VX"]
    given = {line.split()[0]: np.array(line.split()[1:], float) for line in table[1].read_text().splitlines()}
    for i, piece in enumerate(of_table.tokenizer.vocabulary.pieces):
        if piece in given:
            np.testing.assert_allclose(kept[i].numpy(), given[piece] / np.linalg.norm(given[piece]), atol=1e-6)


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(text: Path, tmp_path: Path) -> None:
    survives_a_kill("train", "autoencoder", text, folder=tmp_path, at_step=13, budget="24steps", settings={"width": 8})


def test_eval_stands_beside_addition_and_a_linear_map(of_table: Run) -> None:
    result = lmlab.evaluate(of_table)
    assert isinstance(result, CombiningResult)
    assert result.classes == ("alpha", "zeta")
    assert result.over_addition.explained.value > 0
    assert result.scores.explained.value <= result.linear.explained.value + 0.1  # none is better by a linear decoder
    assert result.over_addition.explained.value == pytest.approx(
        result.scores.explained.value - result.addition.explained.value
    )
    assert json.dumps(result.to_json())


def test_labels_keep_their_names_whatever_their_order_in_a_table(
    of_table: Run, table: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = table[0].read_text().splitlines(keepends=True)
    (tmp_path / "turned.tsv").write_text("".join(reversed(rows)))
    (tmp_path / "swapped.tsv").write_text(
        "".join(rows).replace("alpha", "ALPHA").replace("zeta", "alpha").replace("ALPHA", "zeta")
    )
    right, turned, swapped = (
        lmlab.evaluate(of_table, path) for path in (table[0], tmp_path / "turned.tsv", tmp_path / "swapped.tsv")
    )
    assert isinstance(right, CombiningResult)
    assert isinstance(turned, CombiningResult)
    assert isinstance(swapped, CombiningResult)
    assert right.scores.accuracy.value > 0.85
    assert turned.scores.accuracy.value == right.scores.accuracy.value
    assert swapped.scores.accuracy.value == pytest.approx(1 - right.scores.accuracy.value)  # an order lost would show


def test_combine_gives_the_parent_its_label_and_pairs_near_it(of_text: Run, tmp_path: Path) -> None:
    one, two = lmlab.combine(of_text, ["The", "big", "the", "read"], number=3, out=tmp_path / "map.svg")
    model = of_text.saved
    assert isinstance(model, Autoencoder)
    model.to("cpu")
    names = [piece.strip() for piece in of_text.tokenizer.vocabulary.pieces]
    expected = model.parents(torch.tensor([[names.index("the"), names.index("big")]]))[0]
    np.testing.assert_allclose(one.parent, expected.detach().numpy(), atol=1e-6)
    assert one.words == ("the", "big")
    assert sum(one.p.values()) == pytest.approx(1)
    assert len(two.neighbours) == 3
    assert "the big" not in [near.word for near in one.neighbours]
    assert "the big" in (tmp_path / "map.svg").read_text()


def test_what_cannot_be_combined_is_refused(of_text: Run, table: tuple[Path, Path]) -> None:
    with mistake("word-without-vector", "did you mean 'big'"):
        lmlab.combine(of_text, ["bigg", "the"])
    with pytest.raises(Mistake, match="two by two"):
        lmlab.combine(of_text, ["big"])
    with pytest.raises(Mistake, match="measured on a text"):
        lmlab.evaluate(of_text, table[0])


def test_a_text_that_is_too_short_is_told_how_often_its_words_must_occur(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one two three four five six\n" * 3)
    with mistake("text-too-short-for-vectors"):
        lmlab.train("autoencoder", tmp_path / "short.txt", out=tmp_path / "run", budget="1steps", settings={"least": 2})


def test_vectors_that_diverge_before_anything_is_combined_are_not_taken_for_learned_ones(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a step far too large, in the training of vectors that has no settings of its own."""
    monkeypatch.setattr(GloVe, "default_learning_rate", 1e30)
    with mistake("vectors-not-learned"):
        lmlab.train("autoencoder", text, out=tmp_path / "run", budget="5steps", device="cpu")
    assert not (tmp_path / "run").exists()
