"""The same weights in transformers' GPT-2 give the same greedy text, the same beams and the same probabilities."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from lmlab.config import Budget, TextFacts
from lmlab.engine import generate
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.text.tokenizers import train_tokenizer

PROMPT, NEW = "the cat sat on a café", 30
TOKENIZER = train_tokenizer("char", [PROMPT])


def weights_of_gpt2(model: GPT) -> dict[str, torch.Tensor]:
    """Our weights under GPT-2's names: its matrices are stored the other way round, and it has biases, here zero."""
    width = model.width
    named = {
        "transformer.wte.weight": model.embedding,
        "transformer.wpe.weight": model.position,
        "transformer.ln_f.weight": model.norm,
        "lm_head.weight": torch.cat([model.output, torch.zeros(1, width)]),
    }
    for i, block in enumerate(model.blocks):
        at = f"transformer.h.{i}."
        named |= {at + "ln_1.weight": block.norm_attention, at + "ln_2.weight": block.norm_mlp}
        named |= {at + "attn.c_attn.weight": block.qkv.T, at + "attn.c_proj.weight": block.out.T}
        named |= {at + "mlp.c_fc.weight": block.up.T, at + "mlp.c_proj.weight": block.down.T}
    return {name: tensor.detach().clone() for name, tensor in named.items()}


@pytest.fixture(scope="module")
def pair() -> tuple[GPT, GPT2LMHeadModel]:
    facts = TextFacts(train_tokens=1000, train_bytes=1000, vocab_size=TOKENIZER.vocab_size)
    config = GPTConfig(layers=2, width=32, heads=4, context=64, positions="learned", activation="gelu", tie=False)
    torch.manual_seed(3)
    ours = GPT(GPT.resolve(config, facts, Budget(steps=1)), TOKENIZER.vocab_size)
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(torch.randn_like(weight) * 0.5)
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=ours.vocab_size + 1,  # our begin symbol is an input of its own
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=4,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    missing, unexpected = theirs.load_state_dict(weights_of_gpt2(ours), strict=False)
    assert not unexpected
    assert all(name.endswith("bias") for name in missing)
    return ours.eval(), theirs.eval()


@pytest.mark.parametrize("width", [1, 3, 8])
def test_greedy_and_beam_search_find_the_texts_that_transformers_finds(
    pair: tuple[GPT, GPT2LMHeadModel], width: int
) -> None:
    ours, theirs = pair
    ids = [ours.begin_id, *TOKENIZER.encode(PROMPT).ids.tolist()]
    expected = theirs.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        max_new_tokens=NEW,
        num_beams=width,
        num_return_sequences=width,
        do_sample=False,
        suppress_tokens=[ours.begin_id],
        pad_token_id=0,
    )[:, len(ids) :]
    method = {"method": "greedy"} if width == 1 else {"method": "beam", "beam_width": width, "n_best": width}
    found = generate(ours, TOKENIZER, PROMPT, max_tokens=NEW, **method)
    assert [f.ids for f in found] == [tuple(row) for row in expected.tolist()]
    assert len(set(found[0].ids)) > 5, "a text that repeats itself would prove little"


def test_nats_are_those_of_transformers(pair: tuple[GPT, GPT2LMHeadModel]) -> None:
    ours, theirs = pair
    (found,) = generate(ours, TOKENIZER, PROMPT, max_tokens=NEW, seed=4)
    ids = [ours.begin_id, *TOKENIZER.encode(PROMPT).ids.tolist(), *found.ids]
    with torch.no_grad():
        logits_TV = theirs(torch.tensor([ids])).logits[0, :-1, : ours.vocab_size]
    nats_T = torch.nn.functional.cross_entropy(logits_TV, torch.tensor(ids[1:]), reduction="none")
    assert found.nats == pytest.approx(float(nats_T[-NEW:].sum()), rel=1e-5)
