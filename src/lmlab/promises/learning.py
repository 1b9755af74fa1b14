"""What a language model that learns promises beyond the rest: of its loss, its gradients and its training mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.formulas import weights
from lmlab.hardware.precision import expect_slow_bf16
from lmlab.interface import CarriedLanguageModel, NeuralLanguageModel, Windows
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.promises.checks import random_tokens, same

LearningCheck = Callable[[NeuralLanguageModel], None]
CarriedCheck = Callable[[CarriedLanguageModel], None]

REPEATS, LOOKED_EVERY = 150, 15  # steps in which a repeating text must be learned, and after how many it is looked at


def _window(model: NeuralLanguageModel, rows: int, length: int) -> Tensor:
    return random_tokens(model, rows, min(model.longest_window or length, length))


@contextmanager
def _gradients(model: NeuralLanguageModel) -> Iterator[None]:
    """The model has no gradients before and after."""
    model.zero_grad()
    try:
        yield
    finally:
        model.zero_grad()


@contextmanager
def _rough_products(model: NeuralLanguageModel) -> Iterator[None]:
    """The model multiplies in bf16 meanwhile; afterwards as before, and it is not in training."""
    expect_slow_bf16()
    before, model.compute_dtype = model.compute_dtype, torch.bfloat16
    try:
        yield
    finally:
        model.eval()
        model.compute_dtype = before


def check_loss_is_the_sum_of_scores(model: NeuralLanguageModel) -> None:
    """In evaluation, over a window that starts afresh; under a mask, the sum and number of what it leaves."""
    tokens_BT = _window(model, 5, 9)
    nats_BT = model.score(tokens_BT)
    loss = model.loss(Windows(tokens_BT))
    assert loss.count == tokens_BT.numel(), f"{loss.count} tokens counted of {tokens_BT.numel()}"
    same(loss.total.detach(), nats_BT.sum(), "the loss is not the sum of the scores")
    mask_BT = torch.rand(tokens_BT.shape, generator=torch.Generator().manual_seed(3)) < 0.4
    mask_BT[0, 0] = True
    loss = model.loss(Windows(tokens_BT, mask_BT))
    assert loss.count == int(mask_BT.sum()), f"{loss.count} tokens counted of {int(mask_BT.sum())} under the mask"
    same(loss.total.detach(), nats_BT[mask_BT].sum(), "the loss is not the sum of the scores under the mask")


def check_parts_add_up_to_the_weights(model: NeuralLanguageModel) -> None:
    """What the model says it is made of, if it says so, has as many weights as there are."""
    there, said = sum(p.numel() for p in model.parameters()), weights(model.parts(model.config, model.vocab_size))
    assert said in (0, there), f"the parts add up to {said} weights, and there are {there}"


def check_every_weight_learns(model: NeuralLanguageModel) -> None:
    """Every weight that may change has a gradient, finite and somewhere not zero."""
    with _gradients(model):
        model.loss(Windows(_window(model, 6, 12))).total.backward()
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                assert weight.grad is not None, f"{name} has no gradient"
                assert bool(weight.grad.isfinite().all()), f"the gradient of {name} is not finite"
                assert bool(weight.grad.any()), f"the gradient of {name} is zero everywhere"


def check_the_whole_context_is_used(model: NeuralLanguageModel) -> None:
    """Where every prediction sees its last N tokens, the oldest of them does make a difference."""
    if model.policy.stride != 1 or not model.policy.most:
        return
    tokens_BT = random_tokens(model, 1, model.policy.most + 3)
    changed_BT = tokens_BT.clone()
    changed_BT[0, 0] = (changed_BT[0, 0] + 1) % model.vocab_size
    moved_T = model.score(changed_BT)[0] != model.score(tokens_BT)[0]
    assert bool(moved_T[1 : model.policy.most + 1].all()), "a token within the context makes no difference"


def check_training_mode_does_not_change_scores(model: NeuralLanguageModel) -> None:
    """Dropout and rough products disturb the loss while training, and never a score."""
    tokens_BT = random_tokens(model, 3, 8)
    expected_BT = model.score(tokens_BT)
    with _rough_products(model):
        scored_BT = model.train().score(tokens_BT)
    same(scored_BT, expected_BT, "scores change in training mode")


def check_rougher_products_give_nearly_the_same_gradients(model: NeuralLanguageModel) -> None:
    """With products in bf16 the loss stays float32 and close, and the gradients point the same way."""
    batch = Windows(_window(model, 8, 16))
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    exact = model.loss(batch).total
    exact_grads = torch.autograd.grad(exact, weights)
    with _rough_products(model):
        total = model.loss(batch).total
        grads = torch.autograd.grad(total, weights)
    assert total.dtype == torch.float32, f"the loss is {total.dtype}"
    assert abs(total.item() / exact.item() - 1) < 0.02, f"the loss in bf16 is {total.item()}, not {exact.item()}"
    flat, exact_flat = (torch.cat([g.flatten() for g in gs]) for gs in (grads, exact_grads))
    assert flat.dtype == torch.float32, f"gradients are {flat.dtype}"
    assert torch.cosine_similarity(flat, exact_flat, dim=0) > 0.98, "gradients in bf16 point elsewhere"


def check_weights_that_do_not_fit_are_refused(model: NeuralLanguageModel) -> None:
    """from_tensors says so when a tensor is lacking or left over."""
    whole = model.tensors()
    for wrong in (dict(list(whole.items())[1:]), whole | {"surplus": torch.zeros(1)}):
        try:
            type(model).from_tensors(model.config, model.vocab_size, wrong)
        except Mistake:
            continue
        raise AssertionError("weights that do not fit were taken")


def check_decoding_leaves_training_possible(model: NeuralLanguageModel) -> None:
    """Nothing that inference makes or keeps stands in the way of gradients afterwards."""
    tokens_BT = _window(model, 2, 8)
    with torch.inference_mode():
        _, state = model.begin(2)
        for t in range(tokens_BT.shape[1]):
            _, state = model.advance(tokens_BT[:, t : t + 1], state)
    with _gradients(model):
        model.loss(Windows(tokens_BT)).total.backward()


def check_a_repeating_text_is_learned(model: NeuralLanguageModel) -> None:
    """A fresh model of this kind, trained on one line over and over, comes to know it in so many steps or fewer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        fresh = type(model)(model.config, model.vocab_size)
        length = min(fresh.longest_window or 30, 30)
        text_BT = (torch.arange(length) % min(5, model.vocab_size))[None].repeat(4, 1)
        config = OptimizerConfig(learning_rate=fresh.default_learning_rate)
        optimizer = Optimizer(dict(fresh.named_parameters()), config, fresh.hidden_matrices())
        before, after = float(torch.tensor(float(model.vocab_size)).log()), float("inf")
        for step in range(1, REPEATS + 1):
            fresh.zero_grad()
            fresh.train().loss(Windows(text_BT)).mean.backward()
            optimizer.step(1.0)
            if step % LOOKED_EVERY == 0:
                after = float(fresh.eval().score(text_BT)[:, min(5, length - 1) :].mean())
                if after < 0.3 * before:
                    return
    raise AssertionError(f"a repeating text still costs {after:.3f} nats a token, guessing {before:.3f}")


def check_carried_loss_is_the_sum_of_scores(model: CarriedLanguageModel) -> None:
    """The stretches of a text cost what the text costs, and what is carried holds no graph."""
    tokens_BT = random_tokens(model, 3, 20)
    carry, total, count = None, torch.tensor(0.0), 0
    with _gradients(model):
        for stretch_BT in tokens_BT.split([7, 1, 12], dim=1):
            loss, carry = model.loss_carried(stretch_BT, carry)
            loss.total.backward()  # a graph that reached into the stretch before would be gone by now
            total, count = total + loss.total.detach(), count + loss.count
    assert count == tokens_BT.numel(), f"{count} tokens counted of {tokens_BT.numel()}"
    same(total, model.score(tokens_BT).sum(), "carried stretches cost another sum than the whole")


OF_LEARNING: tuple[LearningCheck, ...] = (
    check_loss_is_the_sum_of_scores,
    check_parts_add_up_to_the_weights,
    check_every_weight_learns,
    check_the_whole_context_is_used,
    check_training_mode_does_not_change_scores,
    check_rougher_products_give_nearly_the_same_gradients,
    check_weights_that_do_not_fit_are_refused,
    check_decoding_leaves_training_possible,
)
OF_CARRYING: tuple[CarriedCheck, ...] = (check_carried_loss_is_the_sum_of_scores,)
