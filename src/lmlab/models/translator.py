"""`translator`: an encoder-decoder Transformer (Vaswani 2017) that writes a text in several other languages.

    m = norm(Encoder(E[source] + position)),   x⁰_t = E[token_{t-1}] + position,   x⁰_0 = E[language]
    x^l = Network(Cross(SelfAttention(x^{l-1}), m)),   p(token_t) = softmax(E norm(x^L)_t)

Only the decoder is told which language is wanted, as its first input. So a source is read once, whatever it is to become: a
second language costs no more of the encoder, nor of the keys and values made of its output.

Ids: 0 … V-1 are the tokens, V is the end of a sentence, which is predicted like a token and stands behind every source too,
V+1+k begins the k-th language. One table serves the source, the target and the output.

Shapes: B sources, S tokens of a source, K languages, T tokens of a target with its end, D width, H heads, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size
from lmlab.interface import ContextPolicy, LanguageModel, Learner, Loss, State, spend
from lmlab.layers.blocks import Block, CrossAttention, block_parts, cross_part
from lmlab.layers.composition import Composition
from lmlab.layers.heads import cross_entropy_nats, head_part, log_probabilities, summed_nats
from lmlab.layers.looking import Looks, Way
from lmlab.layers.positions import sinusoidal_table
from lmlab.models.sizing import Appetite, heads_of, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

BATCH_TOKENS = 2048  # of targets in a step, padding included
HEAD_WIDTH = 64
USUAL_TOKENS = 32  # of a sentence
SIZES = [(1, 64), (2, 96), (2, 128), (3, 192), (4, 256), (4, 384), (5, 512), (6, 640)]  # (layers, width)
# Sentences are few where texts are long: what a corpus can fill is bounded more tightly than for a text that is read as one.
APPETITE = Appetite(batch_tokens=BATCH_TOKENS, tokens_per_weight=0.9, weights_per_token=8.0, head=False)


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig:
    """Settings of `translator`; None is filled in by what suits the pairs and the budget."""

    languages: int | None = None  # to translate into; the pairs say
    layers: int | None = None  # blocks of the encoder, and as many of the decoder
    width: int | None = None  # of both streams
    heads: int | None = None  # of attention in a block; they share its width
    context: int | None = None  # tokens of the longest sentence, with its end
    dropout: float | None = None  # of the first vectors and of what a block adds
    smoothing: float = 0.1  # share of the target that is spread over all tokens while it learns

    def __post_init__(self) -> None:
        sizes = {"layers": self.layers, "width": self.width, "heads": self.heads}
        at_least_one("translator", languages=self.languages, context=self.context, **sizes)
        a_share("translator", dropout=self.dropout, smoothing=self.smoothing)
        if self.width is not None and self.heads is not None and self.width % self.heads:
            raise Mistake(
                f"width {self.width} is not a multiple of heads {self.heads}; choose heads that divide it",
                code="heads-do-not-divide-width",
            )


@dataclass(frozen=True)
class Translations:
    """A batch: sources, and what each becomes in every language; where a mask is False there is nothing."""

    source_BS: Tensor
    there_BS: Tensor
    targets_BKT: Tensor
    mask_BKT: Tensor
    known: int | None = None  # tokens under the mask, where someone counted them before they went to another device

    @property
    def count(self) -> int:
        """Tokens that are predicted, ends included."""
        return self.known if self.known is not None else int(self.mask_BKT.sum())

    @property
    def rows(self) -> int:
        """Sources."""
        return len(self.source_BS)

    def select(self, rows: slice) -> Translations:
        """Return the batch of these rows."""
        return Translations(self.source_BS[rows], self.there_BS[rows], self.targets_BKT[rows], self.mask_BKT[rows])

    def to(self, device: torch.device) -> Translations:
        """The same on another device."""
        source_BS, there_BS, targets_BKT, mask_BKT = (
            part.to(device, non_blocking=True)
            for part in (self.source_BS, self.there_BS, self.targets_BKT, self.mask_BKT)
        )
        return Translations(source_BS, there_BS, targets_BKT, mask_BKT, self.count)


class Source(NamedTuple):
    """What the encoder made of sources: keys and values for every block of the decoder, and which of them are there."""

    kv: tuple[Tensor, ...]  # of each block, B×S×2×H×D
    there_BS: Tensor

    def rows(self, rows_B: Tensor) -> Source:
        """Some of them, which may repeat."""
        return Source(tuple(kv_BS2HD[rows_B] for kv_BS2HD in self.kv), self.there_BS[rows_B])

    @classmethod
    def concat(cls, sources: Sequence[Source]) -> Source:
        """Return the rows of all sources, padded to the longest."""
        longest = max(source.there_BS.shape[1] for source in sources)

        def padded(x_BS: Tensor) -> Tensor:
            return F.pad(x_BS, (0, 0) * (x_BS.ndim - 2) + (0, longest - x_BS.shape[1]))

        kv = zip(*(source.kv for source in sources), strict=True)
        there_BS = torch.cat([padded(source.there_BS) for source in sources])
        return Source(tuple(torch.cat([padded(x) for x in block]) for block in kv), there_BS)


class Translator(Learner):
    """Encoder and decoder of pre-norm blocks."""

    name = "translator"
    Config = TranslatorConfig
    position_CD: Tensor
    default_learning_rate: ClassVar[float] = 0.001
    reads: ClassVar[str] = "a source of {} tokens with its translations of as many"
    letters: ClassVar[dict[str, str]] = {"languages": "K", "layers": "L", "width": "D", "heads": "H", "context": "C"}

    def __init__(self, config: TranslatorConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        languages, layers, width, heads = config.languages, config.layers, config.width, config.heads
        if not (languages and layers and width and heads and config.context):
            raise AssertionError("resolve first")
        made_of = Composition.of(width, layers, heads)
        self.languages, self.width, self.context, self.end_id = languages, width, config.context, vocab_size
        self.embedding = nn.Parameter(torch.randn(vocab_size + 1 + languages, width) * width**-0.5)
        self.encoder = nn.ModuleList(Block(made_of) for _ in range(layers))
        self.encoder_norm = nn.Parameter(torch.ones(width))
        self.decoder = nn.ModuleList(Block(made_of) for _ in range(layers))
        self.cross = nn.ModuleList(CrossAttention(width, heads, layers) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.register_buffer("position_CD", sinusoidal_table(self.context, width), persistent=False)

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """A row of `shape` is a source with its translations into all K languages; where no source is said, of T tokens too."""
        c, length = config, shape.source or shape.tokens
        made_of = Composition.of(c.width, c.layers, c.heads)
        source = Shape(shape.rows, length)
        targets = Shape(shape.rows * c.languages, shape.tokens)
        return [
            Part(EMBEDDING, (vocab_size + 1 + c.languages) * c.width),
            *block_parts(made_of, source, "encoder "),
            *block_parts(made_of, targets, "decoder "),
            cross_part(c.width, c.layers, Shape(shape.rows, shape.tokens, source=length), c.languages),
            Part("norm", c.width, times=2),
            head_part(vocab_size + 1, c.width, targets, tied=True),
        ]

    @classmethod
    def resolve(cls, config: TranslatorConfig, facts: TextFacts, budget: Budget) -> TranslatorConfig:
        """Size the model to what the budget can train and the pairs can feed; explicit settings are kept."""

        def at(size: tuple[int, int]) -> TranslatorConfig:
            layers, width = size
            heads = heads_of(width, HEAD_WIDTH)
            return TranslatorConfig(languages=1, layers=layers, width=width, heads=heads, context=256, dropout=0.0)

        layers, width = APPETITE.size(SIZES, at, cls.parts, facts, budget)
        chosen = with_settings(at((config.layers or layers, config.width or width)), config)
        return APPETITE.with_dropout(chosen, config.dropout, facts, budget)

    @property
    def usual_length(self) -> int:
        """A sentence."""
        return min(USUAL_TOKENS, self.config.context)

    def blank(self, rows: int, tokens: int) -> Translations:
        """Sources and targets of one token again and again, all of one length."""
        source_BS = torch.zeros(rows, tokens, dtype=torch.long)
        targets_BKT = torch.zeros(rows, self.config.languages, tokens, dtype=torch.long)
        return Translations(source_BS, source_BS == 0, targets_BKT, targets_BKT == 0)

    def hidden_matrices(self) -> dict[str, int]:
        """Those of every block, and what reads the source."""
        block = {"qkv": 3, "out": 1, "up": 1, "down": 1}
        names = {f"{side}.{{}}.{name}": n for side in ("encoder", "decoder") for name, n in block.items()}
        names |= {"cross.{}.query": 1, "cross.{}.kv": 2, "cross.{}.out": 1}
        return {name.format(i): parts for i in range(len(self.cross)) for name, parts in names.items()}

    def loss(self, batch: Translations) -> Loss:
        """Nats of the targets with their ends, in all languages.

        While it learns, a share ε of each target is spread over all tokens. That adds ε (z_target - mean z) of the logits z;
        as z = h Eᵀ, it takes no more than ε h (E_target - mean E). The number stays that of the targets alone.
        """
        dtype, dropout = self.compute_dtype, self._dropout
        rows, languages, _ = batch.targets_BKT.shape
        assert languages == self.languages, "a batch has every language"
        source = self._source(batch.source_BS, batch.there_BS, dtype, dropout)
        first_BK1 = self._begins(torch.arange(languages, device=batch.targets_BKT.device)).expand(rows, -1)[..., None]
        inputs_BT = torch.cat([first_BK1, batch.targets_BKT[..., :-1]], dim=-1).flatten(0, 1)
        hidden_ND = self._hidden(inputs_BT, source, dtype, dropout).flatten(0, 1).to(dtype)
        targets_N, mask_N = batch.targets_BKT.reshape(-1), batch.mask_BKT.reshape(-1)
        total = summed_nats(hidden_ND, self.output_weight, None, targets_N, mask_N)
        if self.training and self.config.smoothing:
            apart_ND = F.embedding(targets_N, self.output_weight) - self.output_weight.mean(0)
            spread = (hidden_ND.float() * apart_ND * mask_N[:, None]).sum() * self.config.smoothing
            total = total + spread - spread.detach()
        return Loss(total=total, count=batch.count)

    @torch.no_grad()
    def encode(self, source_BS: Tensor, there_BS: Tensor) -> Source:
        """What the decoder needs of these sources, for any language. float32."""
        assert not self.training, "dropout disturbs a source"
        return self._source(source_BS, there_BS, torch.float32, 0.0)

    def given(self, source: Source, language: int, longest: int | None = None) -> Conditioned:
        """The distribution of texts in a language (by number), given these sources; of `longest` tokens at most."""
        return Conditioned(self, source, language, min(longest or self.context, self.context))

    @torch.no_grad()
    def looks_across(self, source_S: Tensor, target_T: Tensor, language: int) -> Iterator[Looks]:
        """What the heads looked at while they read one source and wrote one target, both with their ends.

        First the blocks of the encoder; then of each block of the decoder its own attention and its attention to the source.
        """
        source_1S, there_1S = source_S[None], torch.ones_like(source_S[None], dtype=torch.bool)
        x_1SD = self._embed(source_1S, 0, 0.0)
        for number, block in enumerate(_blocks(self.encoder), start=1):
            yield Looks.of_all(f"encoder {number}", *block.looks_both_ways(x_1SD, there_1S), Way.AROUND)
            x_1SD = block.network(block.attend_both_ways(x_1SD, there_1S, torch.float32, 0.0), torch.float32, 0.0)
        source = self._source(source_1S, there_1S, torch.float32, 0.0)
        begin = int(self._begins(torch.tensor(language)))
        x_1TD = self._embed(F.pad(target_T[None, :-1], (1, 0), value=begin), 0, 0.0)
        first_T = torch.full_like(target_T, -1)
        parts = zip(_blocks(self.decoder), self._crosses(), source.kv, strict=True)
        for number, (block, cross, kv_1S2HD) in enumerate(parts, start=1):
            weights_1HTT, difference = block.looks(x_1TD, None)
            name, weights_HTT = f"decoder {number}", weights_1HTT[0]
            yield Looks(name=name, weights_HTC=weights_HTT, first_T=first_T, begins_T=first_T, difference=difference)
            x_1TD = block.attend(x_1TD, None, torch.float32, 0.0)
            yield Looks.of_all(f"alignment {number}", *cross.looks(x_1TD, kv_1S2HD, there_1S), Way.ACROSS)
            x_1TD = block.network(cross(x_1TD, kv_1S2HD, there_1S, torch.float32, 0.0), torch.float32, 0.0)

    def without_head(self, layer: int, head: int) -> AbstractContextManager[None]:
        """While it lasts, one head of one layer (both from 0, layers in the order of `looks_across`) is switched off."""
        pairs = zip(_blocks(self.decoder), self._crosses(), strict=True)
        layers: list[Block | CrossAttention] = [*_blocks(self.encoder), *(part for pair in pairs for part in pair)]
        return layers[layer].without_head(head)

    @property
    def output_weight(self) -> Tensor:
        """(V+1)×D: the table without what begins a language."""
        return self.embedding[: self.vocab_size + 1]

    @property
    def _dropout(self) -> float:
        return float(self.config.dropout or 0.0) if self.training else 0.0

    def _begins(self, languages_K: Tensor) -> Tensor:
        return self.vocab_size + 1 + languages_K

    def _source(self, source_BS: Tensor, there_BS: Tensor, dtype: torch.dtype, dropout: float) -> Source:
        x_BSD = self._embed(source_BS, 0, dropout)
        for block in _blocks(self.encoder):
            x_BSD = block.network(block.attend_both_ways(x_BSD, there_BS, dtype, dropout), dtype, dropout)
        memory_BSD = F.layer_norm(x_BSD, (self.width,), self.encoder_norm)
        return Source(tuple(cross.keys_and_values(memory_BSD, dtype) for cross in self._crosses()), there_BS)

    def _hidden(self, inputs_BT: Tensor, source: Source, dtype: torch.dtype, dropout: float) -> Tensor:
        """The normed output of the decoder; the streams of one source lie side by side."""
        x_BTD = self._embed(inputs_BT, 0, dropout)
        for block, cross, kv_BS2HD in zip(_blocks(self.decoder), self._crosses(), source.kv, strict=True):
            x_BTD = block.attend(x_BTD, None, dtype, dropout)
            x_BTD = cross(x_BTD, kv_BS2HD, source.there_BS, dtype, dropout)
            x_BTD = block.network(x_BTD, dtype, dropout)
        return F.layer_norm(x_BTD, (self.width,), self.norm)

    def _embed(self, inputs_BT: Tensor, first: int, dropout: float) -> Tensor:
        end = first + inputs_BT.shape[1]
        if end > self.context:
            raise Mistake(
                f"a sentence of {end} tokens is longer than the {self.context} that the translator reads",
                code="sentence-longer-than-context",
            )
        x_BTD = F.embedding(inputs_BT, self.embedding) * self.width**0.5 + self.position_CD[first:end]
        return F.dropout(x_BTD, dropout) if dropout else x_BTD

    def _crosses(self) -> Iterator[CrossAttention]:
        for cross in self.cross:
            assert isinstance(cross, CrossAttention)
            yield cross


def _blocks(stack: nn.ModuleList) -> Iterator[Block]:
    for block in stack:
        assert isinstance(block, Block)
        yield block


class TargetState(State):
    """Keys and values of what was written, the sources of the rows, and the input that is not read yet."""

    def __init__(self, kv_L2BHCD: Tensor, source: Source, filled: int) -> None:
        super().__init__()
        self.kv_L2BHCD, self.source, self.filled = kv_L2BHCD, source, filled

    def select(self, rows_B: Tensor) -> TargetState:
        """Copy, repeat or reorder rows: of keys and values only the positions that are filled."""
        layers, two, _, *rest = self.kv_L2BHCD.shape
        kv_L2BHCD = self.kv_L2BHCD.new_empty(layers, two, len(rows_B), *rest)
        kv_L2BHCD[..., : self.filled, :] = self.kv_L2BHCD[..., : self.filled, :].index_select(2, rows_B)
        return TargetState(kv_L2BHCD, self.source.rows(rows_B), self.filled)

    @classmethod
    def concat(cls, states: Sequence[TargetState]) -> TargetState | None:
        """Return one state with the rows of all states; None if they have read different numbers of tokens. Spends them."""
        if len({state.filled for state in states}) > 1:
            return None
        spend(states)
        filled, longest = states[0].filled, max(state.kv_L2BHCD.shape[4] for state in states)
        layers, two, _, heads, _, width = states[0].kv_L2BHCD.shape
        rows = sum(state.kv_L2BHCD.shape[2] for state in states)
        kv_L2BHCD = states[0].kv_L2BHCD.new_empty(layers, two, rows, heads, longest, width)
        kv_L2BHCD[..., :filled, :] = torch.cat([state.kv_L2BHCD[..., :filled, :] for state in states], dim=2)
        return TargetState(kv_L2BHCD, Source.concat([state.source for state in states]), filled)


class Conditioned(LanguageModel):
    """A translator that has read its sources and knows the language: a distribution over texts that end, one source a row."""

    name = "translator"
    Config = TranslatorConfig
    policy = ContextPolicy.everything()

    def __init__(self, translator: Translator, source: Source, language: int, longest: int) -> None:
        assert not translator.training, "dropout disturbs a distribution"
        self.translator, self.source, self.longest = translator, source, longest
        self.config, self.vocab_size, self.end_id = translator.config, translator.vocab_size + 1, translator.end_id
        self.begin_id = translator.vocab_size + 1 + language

    def tensors(self) -> dict[str, Tensor]:
        """Those of the translator."""
        return self.translator.tensors()

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """It is not kept: the translator is."""
        raise AssertionError("open the translator, and give it a source")

    @torch.no_grad()
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token, the end among them; what stands behind an end is scored as if the text went on."""
        hidden_BTD = self.translator._hidden(
            F.pad(tokens_BT[:, :-1], (1, 0), value=self.begin_id), self._sources(len(tokens_BT)), torch.float32, 0.0
        )
        nats_N = cross_entropy_nats(
            hidden_BTD.flatten(0, 1), self.translator.output_weight, None, tokens_BT.reshape(-1)
        )
        return nats_N.view(tokens_BT.shape)

    def begin(self, rows: int) -> tuple[Tensor, TargetState]:
        """Distribution of the first token. rows: as many as there are sources, or any number where there is one."""
        *_, heads, width = self.source.kv[0].shape
        device = self.source.there_BS.device
        kv_L2BHCD = torch.empty(len(self.source.kv), 2, rows, heads, self.longest, width, device=device)
        first_B1 = torch.full((rows, 1), self.begin_id, device=device)
        return self._read(first_B1, TargetState(kv_L2BHCD, self._sources(rows), 0))

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, TargetState]:
        """Distribution after these tokens."""
        assert isinstance(state, TargetState)
        state.spend()
        return self._read(tokens_BT, state)

    @torch.no_grad()
    def _read(self, inputs_BT: Tensor, state: TargetState) -> tuple[Tensor, TargetState]:
        model, source, end = self.translator, state.source, state.filled + inputs_BT.shape[1]
        longest = state.kv_L2BHCD.shape[4]
        if end > longest:
            raise Mistake(
                f"a text of {end} tokens is longer than the {longest} that were allowed",
                code="text-longer-than-allowed",
            )
        x_BTD = model._embed(inputs_BT, state.filled, 0.0)
        parts = zip(_blocks(model.decoder), model._crosses(), source.kv, state.kv_L2BHCD, strict=True)
        for block, cross, kv_BS2HD, own_2BHCD in parts:
            x_BTD = block.attend_further(x_BTD, None, own_2BHCD, state.filled, x_BTD.dtype)
            x_BTD = cross(x_BTD, kv_BS2HD, source.there_BS, torch.float32, 0.0)
            x_BTD = block.network(x_BTD, torch.float32, 0.0)
        last_BD = F.layer_norm(x_BTD[:, -1], (model.width,), model.norm)
        after = TargetState(state.kv_L2BHCD, source, end)
        return log_probabilities(last_BD, model.output_weight, None), after

    def _sources(self, rows: int) -> Source:
        """One for each row."""
        sources = len(self.source.there_BS)
        if sources == rows:
            return self.source
        assert sources == 1, f"{rows} rows for {sources} sources"
        return self.source.rows(torch.zeros(rows, dtype=torch.long, device=self.source.there_BS.device))
