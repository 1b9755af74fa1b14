"""A plain `nn.Module` with `forward(ids) -> logits`, wrapped as a language model that every verb takes.

The wrapper adds what a plain module lacks: a begin symbol, a context policy, a loss, and scores token by token. It needs no
cache, because it reads its window again for each step. Shapes: B rows, T tokens, V vocabulary, C context.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, make_dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, misfit
from lmlab.interface import ContextPolicy, Loss, NeuralLanguageModel, State, Windows, spend
from lmlab.layers.heads import FEATURES, confidence_of

CONTEXT_NAMES = (
    "context",
    "block_size",
    "context_length",
    "context_size",
    "max_seq_len",
    "seq_len",
    "max_len",
    "n_ctx",
)
VOCABULARY_NAMES = ("vocab_size", "n_vocab", "num_tokens", "n_tokens", "ntoken", "vocab")
DEFAULT_CONTEXT = 128  # tokens in a window, where the module names none
SETTINGS = (int, float, str, bool)  # types of a constructor's arguments that `--set` can change
LOGITS_AT_ONCE = (
    1 << 24
)  # computed in one call while scoring, so that a long text needs no more memory than a short one


class PlainModel(NeuralLanguageModel):
    """A language model around a plain module, which `make(settings, ids)` constructs.

    The module is made for V + 1 ids. The last id is the begin symbol, with which every window starts. The logits of the begin
    symbol are left out, so the module may have V + 1 outputs or V.
    """

    confidence_features: ClassVar[int] = FEATURES
    default_optimizer: ClassVar[str] = "adamw"
    default_learning_rate: ClassVar[float] = 0.003
    context_setting: ClassVar[str]  # the name of the setting that holds the tokens in a window
    make: ClassVar[Callable[[dict[str, Any], int], nn.Module]]

    def __init__(self, config: Any, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.context = int(getattr(config, self.context_setting))
        if self.context < 2:
            raise Mistake(f"{self.name}: {self.context_setting} is 2 tokens or more", code="plain-module-context")
        self.policy = ContextPolicy.windows(self.context, (self.context + 1) // 2)
        self.module = type(self).make(asdict(config), vocab_size + 1)
        if not isinstance(self.module, nn.Module):
            raise Mistake(f"{self.name} returns no nn.Module, but {self.module!r}", code="plain-module-not-made")
        if not any(weight.requires_grad for weight in self.module.parameters()):
            raise Mistake(f"{self.name} has no parameters to learn", code="plain-module-without-parameters")

    @classmethod
    def resolve(cls, config: Any, facts: Any, budget: Any) -> Any:
        """Return the config as it is: a plain module does not choose its own size."""
        return config

    @property
    def batch_shape(self) -> tuple[int, int]:
        """32 rows of one window each."""
        return 32, self.context

    @property
    def longest_window(self) -> int:
        """The context of the module."""
        return self.context

    def loss(self, batch: Windows) -> Loss:
        """Return the nats of the tokens under the mask; every row starts with the begin symbol."""
        rough, device = self.compute_dtype != torch.float32, batch.tokens_BT.device.type
        with torch.autocast(device, self.compute_dtype, enabled=rough):
            logits_BTV = self._logits(self._inputs(batch.tokens_BT))
        nats_BT = F.cross_entropy(logits_BTV.transpose(1, 2), batch.tokens_BT, reduction="none")
        kept = nats_BT if batch.mask_BT is None else nats_BT * batch.mask_BT
        return Loss(total=kept.sum(), count=batch.count)

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Return the nats of each token given the tokens of its window before it."""
        return self.score_with_confidence(tokens_BT)[0]

    @torch.no_grad()
    def score_with_confidence(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return the nats of each token, and what `confidence_of` says of its distribution."""
        rows = len(tokens_BT)
        with self._evaluating():
            found = [self._read(windows_NC, new) for windows_NC, new in self._windows(tokens_BT)]
        # Each group of windows predicts the tokens that follow those of the group before it.
        found_BTF = torch.cat([part.reshape(rows, -1, 1 + FEATURES) for part in found], dim=1)
        return found_BTF[..., 0], found_BTF[..., 1:]

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Return the log-probabilities of the first token, and a state of no tokens."""
        empty_B0 = torch.zeros(rows, 0, dtype=torch.long, device=next(self.parameters()).device)
        return self._after(empty_B0), WindowState(empty_B0, 0)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the log-probabilities of the token after these. The window so far is read again."""
        assert isinstance(state, WindowState)
        state = state.push(tokens_BT, self.policy)
        return self._after(state.tokens_BC), state

    def confidence_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """Return what `confidence_of` says of the next token."""
        return confidence_of(logp_BV)

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and the persistent buffers by name. Tied weights appear once."""
        buffers = {name: value for name, value in self.state_dict().items() if name not in self._parameter_names}
        return super().tensors() | {name: value.detach() for name, value in buffers.items()}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Return a model with these weights and buffers, in evaluation mode.

        Raises:
            Mistake: a tensor is missing, unknown or has another shape.
        """
        model = cls(config, vocab_size)
        if wrong := misfit({name: value.shape for name, value in model.tensors().items()}, tensors):
            raise Mistake(f"these are no weights of {cls.name}: {wrong}", code="weights-do-not-fit-module")
        model.load_state_dict(tensors, strict=False)
        return model.eval()

    @property
    def parameters_count(self) -> int:
        """The number of weights, without buffers."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def _parameter_names(self) -> set[str]:
        return {name for name, _ in self.named_parameters(remove_duplicate=False)}

    def _inputs(self, tokens_BT: Tensor) -> Tensor:
        """Return the begin symbol and all tokens but the last, which predicts nothing."""
        return F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)

    def _logits(self, inputs_BT: Tensor) -> Tensor:
        """Return the logits of the V tokens after each input, float32."""
        found = self.module(inputs_BT)
        logits = found[0] if isinstance(found, tuple) else getattr(found, "logits", found)
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        if not isinstance(logits, Tensor) or logits.ndim != 3 or logits.shape[:2] != inputs_BT.shape:
            raise Mistake(
                f"{self.name}: forward(ids) returns {shape} for ids of shape {tuple(inputs_BT.shape)}; return logits of"
                " shape (rows, tokens, vocabulary), those of every token",
                code="plain-module-logits",
            )
        if logits.shape[2] not in (self.vocab_size, self.vocab_size + 1):
            raise Mistake(
                f"{self.name}: forward(ids) has {logits.shape[2]} outputs; make as many as vocab_size says,"
                f" {self.vocab_size + 1}",
                code="plain-module-outputs",
            )
        return logits[..., : self.vocab_size].float()

    def _windows(self, tokens_BT: Tensor) -> Iterator[tuple[Tensor, int]]:
        """Yield windows of one length, N×C in the order of rows, and how many of their tokens other windows have scored."""
        size, stride = self.context, self.policy.stride
        assert stride is not None, "windows have a stride"
        length, kept = tokens_BT.shape[1], size - stride
        whole = 0 if length < size else 1 + (length - size) // stride
        if whole:
            windows_BKC = tokens_BT.unfold(1, size, stride)
            yield windows_BKC[:, 0], 0
            if whole > 1:
                yield windows_BKC[:, 1:].flatten(0, 1), kept
        start, new = whole * stride, kept if whole else 0
        if start + new < length:  # the last window, which the text does not fill
            yield tokens_BT[:, start:], new

    def _read(self, windows_NC: Tensor, new: int) -> Tensor:
        """Return nats and confidence features of the tokens from `new` on in each window, N×(C - new)×(1 + FEATURES)."""
        at_once = max(1, LOGITS_AT_ONCE // (windows_NC.shape[1] * self.vocab_size))
        found = []
        for some_NC in windows_NC.split(at_once):
            logp_NCV = self._logits(self._inputs(some_NC))[:, new:].log_softmax(-1)
            nats_NC1 = -logp_NCV.gather(2, some_NC[:, new:, None])
            found.append(torch.cat([nats_NC1, confidence_of(logp_NCV)], dim=2))
        return torch.cat(found)

    @torch.no_grad()
    def _after(self, tokens_BC: Tensor) -> Tensor:
        with self._evaluating():
            return self._logits(F.pad(tokens_BC, (1, 0), value=self.vocab_size))[:, -1].log_softmax(-1)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Without dropout, and afterwards in the mode of before."""
        was = self.training
        if was:
            self.eval()
        try:
            yield
        finally:
            if was:
                self.train()


class WindowState(State):
    """The tokens of the present window of each row; every row has read equally many."""

    def __init__(self, tokens_BC: Tensor, position: int) -> None:
        super().__init__()
        self.tokens_BC, self.position = tokens_BC, position

    def select(self, rows_B: Tensor) -> WindowState:
        """Return a new state with these rows."""
        return WindowState(self.tokens_BC[rows_B.to(self.tokens_BC.device)], self.position)

    @classmethod
    def concat(cls, states: Sequence[WindowState]) -> WindowState | None:
        """Return one state with the rows of all these states if they have read equally many tokens; else None."""
        if len({state.position for state in states}) > 1:
            return None
        spend(states)
        return WindowState(torch.cat([state.tokens_BC for state in states]), states[0].position)

    def push(self, tokens_BT: Tensor, policy: ContextPolicy) -> WindowState:
        """Append tokens, and drop those before the window of the next prediction. Spends this state."""
        self.spend()
        joined_BC = torch.cat([self.tokens_BC, tokens_BT], dim=1)
        position = self.position + tokens_BT.shape[1]
        seen = position - policy.resume(position)
        return WindowState(joined_BC[:, joined_BC.shape[1] - seen :], position)


@functools.cache
def wrapped(found: Any, module: str, attribute: str) -> type[PlainModel]:
    """Return the class of language models around what stands at `module:attribute`.

    Args:
        found: a class of modules, a function that returns a module, or a module.
        module: the name of the module of Python.
        attribute: the name in it.

    Raises:
        Mistake: the constructor needs more than the size of the vocabulary.
    """
    where = f"{module}:{attribute}"
    takes_ids, parameters = ("", []) if isinstance(found, nn.Module) else _parameters(found, where)
    settings: list[Any] = [(p.name, _type_of(p), field(default=p.default)) for p in parameters if _type_of(p)]
    names = [name for name, *_ in settings]
    context = next((name for name in CONTEXT_NAMES if name in names), None)
    if own := context is None:
        named = next((getattr(found, n) for n in CONTEXT_NAMES if isinstance(getattr(found, n, None), int)), None)
        context = "context"
        settings.append((context, int, field(default=named or DEFAULT_CONTEXT)))

    def make(values: dict[str, Any], ids: int) -> nn.Module:
        if isinstance(found, nn.Module):
            return copy.deepcopy(found)
        given = {name: value for name, value in values.items() if not (own and name == context)}
        made: nn.Module = found(**{takes_ids: ids}, **given)
        return made

    about = inspect.getdoc(found) if not isinstance(found, nn.Module) else None
    body = {"name": attribute, "context_setting": context, "make": staticmethod(make), "__doc__": about or attribute}
    body |= {"Config": make_dataclass(f"{attribute}Config", settings, frozen=True, kw_only=True)}
    body |= {"__module__": module, "__qualname__": attribute}
    for rate in ("default_learning_rate", "default_weight_decay"):
        if isinstance(getattr(found, rate, None), float):
            body[rate] = getattr(found, rate)
    return types.new_class(attribute, (PlainModel,), exec_body=lambda namespace: namespace.update(body))


def _parameters(found: Any, where: str) -> tuple[str, list[inspect.Parameter]]:
    """Return the name of the parameter that takes the number of ids, and the parameters with defaults."""
    ordinary = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    all_of_them = [p for p in inspect.signature(found).parameters.values() if p.kind in ordinary]
    required = [p.name for p in all_of_them if p.default is p.empty]
    named = next((name for name in VOCABULARY_NAMES if name in [p.name for p in all_of_them]), None)
    takes_ids = named or (required[0] if len(required) == 1 else None)
    if takes_ids is None or (others := [name for name in required if name != takes_ids]):
        lacking = "no argument vocab_size" if takes_ids is None else f"no default for {', '.join(others)}"
        raise Mistake(
            f"{where} has {lacking}; take vocab_size, and give every other argument a default, in the class or in a"
            " function that returns the module",
            code="plain-module-arguments",
        )
    try:
        hints = typing.get_type_hints(vars(found).get("__init__", found) if isinstance(found, type) else found)
    except (NameError, TypeError):
        hints = {}
    rest = [p.replace(annotation=hints.get(p.name, p.empty)) for p in all_of_them if p.name != takes_ids]
    return takes_ids, rest


def _type_of(parameter: inspect.Parameter) -> Any:
    """Return the type of a setting; None for an argument that no text can set, which keeps its default."""
    members = typing.get_args(parameter.annotation) or (parameter.annotation,)
    if typing.get_origin(parameter.annotation) is typing.Literal:
        return parameter.annotation if isinstance(parameter.default, str) else None
    if all(member in (*SETTINGS, type(None)) for member in members):
        return parameter.annotation
    return type(parameter.default) if type(parameter.default) in SETTINGS else None
