"""`huggingface`: any causal language model of the `transformers` library, with its weights.

    p(token_t) = softmax(logits of the library after the inputs before t)

Windows. The model reads at most `context` inputs, as its positions allow. Each window begins with the begin symbol: the
BOS token of the folder, or its EOS token if there is no BOS. A model with neither gives the first token of a text ln V
nats, and its later windows begin with tokens of the text. After `context` predictions the next window starts with the
last `context - stride` tokens, as for `gpt`.

Weights and scores are float32, whatever precision the folder has. `transformers` is imported only when a model is made.

Shapes: B rows, T tokens, C context, V logits, F numbers of a head (nats, or nats and confidence features).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, at_least_one
from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.layers.heads import FEATURES, confidence_of
from lmlab.models._huggingface_state import WindowState, copied

CHUNK_INPUTS = 2048  # inputs read at once; a longer window goes through the key-value cache
CHUNK_LOGITS = 1 << 26  # logits computed at once: 256 MiB in float32
CACHES = ("DynamicCache",)  # classes of the library whose rows `WindowState` can copy


@dataclass(frozen=True, kw_only=True)
class HuggingFaceConfig:
    """Settings of `huggingface`, read from a folder."""

    architecture: Mapping[str, Any] = field(default_factory=dict)  # the content of config.json
    begin_id: int | None = None  # first input of every window; None: there is none
    begins: str = ""  # what that token is, such as "BOS, <s>"
    context: int = 2048  # predictions per window
    stride: int = 1024  # predictions per window after the first

    def __post_init__(self) -> None:
        at_least_one("huggingface", context=self.context, stride=self.stride)


class HuggingFace(nn.Module, LanguageModel):
    """A causal language model of the `transformers` library."""

    name: ClassVar[str] = "huggingface"
    Config: ClassVar[type] = HuggingFaceConfig
    confidence_features: ClassVar[int] = FEATURES

    def __init__(self, config: HuggingFaceConfig, network: Any) -> None:
        """Wrap a network that holds its weights already.

        Args:
            config: the settings.
            network: a `transformers` model with a language-modelling head, in float32.
        """
        super().__init__()
        self.config, self.network = config, network
        self.vocab_size = int(network.get_output_embeddings().weight.shape[0])
        reads = int(network.get_input_embeddings().weight.shape[0])
        most = config.context - (config.begin_id is None)  # without a begin symbol a window keeps one token or more
        if not 1 <= config.stride <= most:
            raise Mistake(f"stride {config.stride} must be between 1 and {most}", code="folder-stride-out-of-range")
        if self.vocab_size > reads or (config.begin_id is not None and not 0 <= config.begin_id < reads):
            raise Mistake(
                f"the model predicts {self.vocab_size} tokens and reads {reads}; every token must be readable",
                code="huggingface-embedding-too-small",
            )
        self.library = f"transformers {version('transformers')}"
        self.context, self.stride = config.context, config.stride
        self.policy = ContextPolicy.windows(config.context, config.stride)
        self.caches: bool | None = None  # whether the network has a cache whose rows can be copied; None: not tried yet
        self.eval()

    # --- scoring ---

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given the window before it, B×T."""
        return self._read(tokens_BT, 1)[..., 0]

    def score_with_confidence(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """The nats, and the entropy and highest log-probability before each token."""
        found_BTF = self._read(tokens_BT, 1 + FEATURES)
        return found_BTF[..., 0], found_BTF[..., 1:]

    def confidence_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """Return the entropy and the highest log-probability."""
        return confidence_of(logp_BV)

    @torch.no_grad()
    def _read(self, tokens_BT: Tensor, numbers: int) -> Tensor:
        """Return the nats, and with `numbers` 3 the confidence features, of every token, B×T×F."""
        (rows, length), device = tokens_BT.shape, tokens_BT.device
        found_BTF = torch.empty(rows, length, numbers, device=device)
        kept, reach = self.context - self.stride, min(self.context, length)
        starts = range(0, max(length - self.context + self.stride, 1), self.stride)
        per_call = max(1, self._inputs_at_once() // max(1, rows * reach))
        for first in range(0, len(starts), per_call):
            group = starts[first : first + per_call]
            index_WC = torch.tensor(group)[:, None] + torch.arange(reach)
            # The last window may reach beyond the text: what stands there follows every token that counts.
            windows_BWC = tokens_BT[:, index_WC.clamp(max=length - 1).to(device)]
            said_XCF = self._windows(windows_BWC.flatten(0, 1), numbers)
            said_BWCF = said_XCF.view(rows, len(group), reach, numbers)
            for window, start in enumerate(group):
                new, end = (kept if start else 0), min(reach, length - start)
                found_BTF[:, start + new : start + end] = said_BWCF[:, window, new:end]
        return found_BTF

    def _windows(self, windows_XC: Tensor, numbers: int) -> Tensor:
        """Return the numbers of every token of windows that start afresh, X×C×F."""
        rows, reach = windows_XC.shape
        found_XCF = torch.empty(rows, reach, numbers, device=windows_XC.device)
        inputs_XC, ahead = windows_XC[:, :-1], 1
        if self.config.begin_id is None:  # nothing predicts the first token of a window
            first_XV = self._uniform(rows, windows_XC.device)
            found_XCF[:, :1] = _numbers(first_XV[:, None], windows_XC[:, :1], numbers)
        else:
            inputs_XC, ahead = F.pad(inputs_XC, (1, 0), value=self.config.begin_id), 0
        done, cache = 0, None
        chunk = max(1, self._inputs_at_once() // rows)
        while done < inputs_XC.shape[1]:
            part_XT = inputs_XC[:, done : done + chunk]
            more = done + part_XT.shape[1] < inputs_XC.shape[1]
            if done and cache is None:  # no cache to continue with: read the window up to here again
                logits_XTV, _ = self._forward(inputs_XC[:, : done + part_XT.shape[1]], None, cached=False)
                logits_XTV = logits_XTV[:, done:]
            else:
                logits_XTV, cache = self._forward(part_XT, cache, cached=more)
            place = slice(done + ahead, done + ahead + part_XT.shape[1])
            found_XCF[:, place] = _numbers(F.log_softmax(logits_XTV, dim=-1), windows_XC[:, place], numbers)
            done += part_XT.shape[1]
        return found_XCF

    def _inputs_at_once(self) -> int:
        return max(1, min(CHUNK_INPUTS, CHUNK_LOGITS // self.vocab_size))

    # --- one token after the other ---

    def begin(self, rows: int) -> tuple[Tensor, WindowState]:
        """Return the distribution of the first token of a text."""
        return self.begin_with(torch.empty(rows, 0, dtype=torch.long))

    def begin_with(self, tokens_BT: Tensor) -> tuple[Tensor, WindowState]:
        """Return the distribution after a prompt, which is read at once."""
        device = self.network.get_input_embeddings().weight.device
        return self._continue(self._in_window(WindowState(None, tokens_BT.to(device), 0)))

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, WindowState]:
        """Return the distribution after these tokens. Windows that end before the last token are not computed."""
        assert isinstance(state, WindowState)
        state.spend()
        window_BT = torch.cat([state.window_BT, tokens_BT], dim=1)
        return self._continue(self._in_window(WindowState(state.cache, window_BT, state.filled)))

    def _in_window(self, state: WindowState) -> WindowState:
        """Return the state of the last window of these tokens. A new window has nothing in its cache."""
        window_BT, cache, filled = state.window_BT, state.cache, state.filled
        while window_BT.shape[1] >= self.context:
            window_BT, cache, filled = window_BT[:, self.stride :], None, 0
        return WindowState(cache, window_BT, filled)

    @torch.no_grad()
    def _continue(self, state: WindowState) -> tuple[Tensor, WindowState]:
        """Read the inputs of the window that are not in its cache; return the distribution after the last one."""
        inputs_BT = state.window_BT
        if self.config.begin_id is not None:
            inputs_BT = F.pad(inputs_BT, (1, 0), value=self.config.begin_id)
        rows, length = inputs_BT.shape
        if not length:
            return self._uniform(rows, inputs_BT.device), state
        cache, done = state.cache, state.filled if state.cache is not None else 0
        chunk, logits_BTV = max(1, self._inputs_at_once() // max(1, rows)), None
        while done < length:
            stop = min(done + chunk, length)
            if done and cache is None:
                logits_BTV, _ = self._forward(inputs_BT[:, :stop], None, cached=False)
            else:
                logits_BTV, cache = self._forward(inputs_BT[:, done:stop], cache, cached=True)
            done = stop
        assert logits_BTV is not None
        return F.log_softmax(logits_BTV[:, -1], dim=-1), WindowState(cache, state.window_BT, length)

    def _forward(self, inputs_BT: Tensor, cache: Any, *, cached: bool) -> tuple[Tensor, Any]:
        """Return the logits after these inputs, float32, and the cache; None if it cannot be continued from."""
        cached = cached and self.caches is not False
        with quiet():
            out = self.network(input_ids=inputs_BT, past_key_values=cache, use_cache=cached, return_dict=True)
        kept = getattr(out, "past_key_values", None) if cached else None
        if cached and self.caches is None:
            self.caches = type(kept).__name__ in CACHES and copied(kept, torch.arange(len(inputs_BT))) is not None
        return out.logits.float(), kept if self.caches else None

    def _uniform(self, rows: int, device: torch.device) -> Tensor:
        return torch.full((rows, self.vocab_size), 1.0 / self.vocab_size, device=device).log()

    # --- saving and loading ---

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights of the network by its names; tied weights appear once."""
        buffers = {name: value for name, value in self.network.state_dict().items() if value.numel()}
        named = {name: value.detach() for name, value in self.network.named_parameters()}
        tied = {name for name, _ in self.network.named_parameters(remove_duplicate=False)} - set(named)
        return named | {name: value for name, value in buffers.items() if name not in named and name not in tied}

    @classmethod
    def from_tensors(cls, config: HuggingFaceConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Return the model with these weights, which it shares.

        Raises:
            Mistake: a weight is missing or has another shape.
        """
        network = empty_network(config.architecture)
        missing, unknown = network.load_state_dict(dict(tensors), strict=False, assign=True)
        network.tie_weights()
        needed = {name for name, _ in network.named_parameters()}
        if unknown or (lost := sorted(needed & set(missing) - set(tensors) - _tied_names(network))):
            names = ", ".join(unknown or lost)
            raise Mistake(f"these are no weights of such a model: {names}", code="folder-weights-do-not-fit")
        return cls(config, network.float().eval())

    @property
    def notes(self) -> list[str]:
        """What the first token costs, and what is not known of a model that others trained."""
        return [self.begins, "nobody here knows what this model was trained on, so no text is known to be held out"]

    @property
    def begins(self) -> str:
        """A sentence about the first token."""
        if self.config.begin_id is None:
            return f"the model has neither BOS nor EOS: the first token of a document costs ln {self.vocab_size} nats"
        return f"the first token, and every later window, is conditioned on {self.config.begins}"


def _tied_names(network: Any) -> set[str]:
    every = {name for name, _ in network.named_parameters(remove_duplicate=False)}
    return every - {name for name, _ in network.named_parameters()}


def _numbers(logp_XTV: Tensor, tokens_XT: Tensor, numbers: int) -> Tensor:
    """Return the nats of these tokens and, with `numbers` 3, the confidence features, X×T×F."""
    nats_XT1 = -logp_XTV.gather(2, tokens_XT[..., None])
    return nats_XT1 if numbers == 1 else torch.cat([nats_XT1, confidence_of(logp_XTV)], dim=-1)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the library's warnings and progress bars: results and mistakes say what a user needs."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def empty_network(architecture: Mapping[str, Any]) -> Any:
    """Return the network that a config.json describes, with weights that have no values yet."""
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # transformers 4
        from transformers.modeling_utils import no_init_weights  # type: ignore[attr-defined, no-redef]
    about = dict(architecture)
    with quiet(), no_init_weights():
        config = CONFIG_MAPPING[about["model_type"]].from_dict(about)
        network = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    return network.float().eval()
