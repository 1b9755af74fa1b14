"""The pieces that Transformers are made of: attention, networks, mixtures of experts, in sizes that are numbers or symbols.

Each piece gives a `Part` (weights and operations). Attention also gives the size of its cache for a token, and a mixture
of experts the number of weights that a token does not use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmlab.formulas import EMBEDDING, Part, Shape, Size, joined, linear, product
from lmlab.layers.heads import head_part

WEIGHT, WEIGHT_AND_BIAS = 1, 2  # vectors of a norm


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Attention whose heads may share keys and values (grouped or multi-query attention).

    heads: of queries. head: width of one. keys: heads of keys and values; None: as many as of queries.
    bias: of queries, keys and values; of the output projection. norms: weights of norms of queries and keys.
    """

    heads: Size
    head: Size
    keys: Size | None = None
    bias: tuple[bool, bool] = (False, False)
    norms: Size = 0

    @property
    def key_heads(self) -> Size:
        """The number of heads of keys and values."""
        return self.heads if self.keys is None else self.keys

    def part(
        self,
        width: Size,
        shape: Shape,
        *,
        vectors: Size = 0,
        times: Size = 1,
        memory: Size | None = None,
        name: str = "attention",
    ) -> Part:
        """Weights and operations of `times` such layers.

        Args:
            width: of the residual stream.
            shape: rows and tokens that the model reads.
            vectors: weights of the norm before or after attention.
            times: layers.
            memory: tokens of a second sequence that is attended to; None: attention is to the sequence itself.
            name: of the part.
        """
        seen = shape.past + shape.tokens if memory is None else memory
        made = shape.places if memory is None else shape.rows * memory
        keys = [linear(made, width, self.key_heads * self.head, bias=self.bias[0]) for _ in ("keys", "values")]
        return joined(
            name,
            linear(shape.places, width, self.heads * self.head, bias=self.bias[0]),
            *keys,
            _pairs(shape, seen, self.heads * self.head, self.heads * self.head),
            linear(shape.places, self.heads * self.head, width, bias=self.bias[1]),
            vectors=self.norms + vectors,
            times=times,
        )

    @property
    def cached(self) -> int:
        """The numbers that a layer caches of a token: keys and values."""
        return int(2 * self.key_heads * self.head)


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Latent attention (DeepSeek-AI, DeepSeek-V2, 2024), which makes keys and values from one short vector of each token.

    heads: of queries. latent: width of the short vector. queries: width of that of queries; None: there is none.
    plain, turned: widths of the part of a key without and with rotary positions. value: width of a value.
    """

    heads: Size
    latent: Size
    queries: Size | None
    plain: Size
    turned: Size
    value: Size
    bias: bool = False

    def part(self, width: Size, shape: Shape, *, vectors: Size = 0, times: Size = 1) -> Part:
        """Weights and operations of `times` such layers; `vectors` as in `Attention.part`."""
        places, keys = shape.places, self.heads * (self.plain + self.turned)
        if self.queries is None:
            made = [linear(places, width, keys)]
        else:
            made = [linear(places, width, self.queries, bias=self.bias), linear(places, self.queries, keys)]
        return joined(
            "attention",
            *made,
            linear(places, width, self.latent + self.turned, bias=self.bias),
            linear(places, self.latent, self.heads * (self.plain + self.value)),
            _pairs(shape, shape.past + shape.tokens, keys, self.heads * self.value),
            linear(places, self.heads * self.value, width, bias=self.bias),
            vectors=vectors + self.latent + (0 if self.queries is None else self.queries),
            times=times,
        )

    @property
    def cached(self) -> int:
        """The numbers that a layer caches of a token: the short vector, and the part of the key with positions."""
        return int(self.latent + self.turned)


def _pairs(shape: Shape, seen: Size, keys: Size, values: Size) -> Part:
    """Scores of every query with every key, and averages of values; widths are of all heads together."""
    scores = product(shape.tokens, keys, seen) + product(shape.tokens, seen, values)
    return Part("pairs", work=scores.times(shape.rows))


@dataclass(frozen=True, kw_only=True)
class Network:
    """A feed-forward network: up, perhaps a gate beside it, and down."""

    hidden: Size
    gated: bool = False
    bias: bool = False
    name: str = "feed-forward"

    def part(self, width: Size, places: Size, *, vectors: Size = 0, times: Size = 1) -> Part:
        """Weights and operations of `times` such networks; `vectors` as in `Attention.part`."""
        ups = [linear(places, width, self.hidden, bias=self.bias) for _ in range(2 if self.gated else 1)]
        down = linear(places, self.hidden, width, bias=self.bias)
        return joined(self.name, *ups, down, vectors=vectors, times=times)

    def unused(self, width: Size) -> Size:
        """Return the number of weights that a token does not use: none."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture of experts: a router, gated networks of which each token uses a few, and perhaps one that all use.

    experts: how many. chosen: how many a token uses. hidden: width of each. shared: width of the network that every token
    uses; 0: there is none. shared_gate: whether one number scales its output.
    """

    experts: Size
    chosen: Size
    hidden: Size
    shared: Size = 0
    shared_gate: bool = False

    def part(self, width: Size, places: Size, *, vectors: Size = 0, times: Size = 1) -> Part:
        """Weights of all experts, and the operations of the chosen ones; `vectors` as in `Attention.part`."""
        one = self._expert(width, places)
        pieces = [linear(places, width, self.experts)]
        pieces += [
            Part("experts", self.experts * one.weights, self.chosen * one.multiplied, one.work.times(self.chosen))
        ]
        if self.shared != 0:
            pieces.append(Network(hidden=self.shared, gated=True).part(width, places))
        if self.shared_gate:
            pieces.append(linear(places, width, 1))
        return joined("experts", *pieces, vectors=vectors, times=times)

    def unused(self, width: Size) -> Size:
        """Return the number of weights that a token does not use: those of the other experts."""
        return (self.experts - self.chosen) * self._expert(width, 1).weights

    def _expert(self, width: Size, places: Size) -> Part:
        return Network(hidden=self.hidden, gated=True).part(width, places)


@dataclass(frozen=True, kw_only=True)
class Head:
    """The output layer over the vocabulary."""

    tied: bool = False
    bias: bool = False


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack of equal attention layers with their networks, between an embedding and a head.

    networks: each kind of network, and how many layers have it. norms: weights of the norms of a layer, at attention and
    at the network. tables: learned tables beside the embedding, by name. first_norm, last_norm: weights of the norm behind
    the embedding and before the head. inner: width of the embedding, where two matrices lead to `width` and back.
    head: None for an encoder. pooler: whether a matrix reads the first token.
    """

    width: Size
    layers: Size
    attention: Attention | LatentAttention
    networks: Sequence[tuple[Size, Network | Mixture]]
    norms: tuple[Size, Size]
    tables: Mapping[str, Size] = field(default_factory=dict)
    first_norm: Size = 0
    last_norm: Size = 0
    inner: Size | None = None
    head: Head | None = None
    pooler: bool = False

    def parts(self, vocab_size: Size, shape: Shape) -> list[Part]:
        """Return the parts of this stack; see `Learner.parts`."""
        width, inner = self.width, self.width if self.inner is None else self.inner
        parts = [Part(EMBEDDING, vocab_size * inner)]
        parts += [Part(name, weights) for name, weights in self.tables.items()]
        if self.inner is not None:
            both = linear(shape.places, inner, width), linear(shape.places, width, inner)
            parts.append(joined("projections", *both))
        if self.first_norm != 0:
            parts.append(Part("first norm" if self.last_norm != 0 else "norm", self.first_norm))
        parts.append(self.attention.part(width, shape, vectors=self.norms[0], times=self.layers))
        for times, network in self.networks:
            parts.append(network.part(width, shape.places, vectors=self.norms[1], times=times))
        if self.last_norm != 0:
            parts.append(Part("norm", self.last_norm))
        if self.head is not None:
            parts.append(head_part(vocab_size, inner, shape, bias=self.head.bias, tied=self.head.tied))
        if self.pooler:
            parts.append(joined("pooler", linear(shape.rows, width, width, bias=True)))
        return parts

    @property
    def unused(self) -> Size:
        """The number of weights that a token does not use."""
        return sum((times * network.unused(self.width) for times, network in self.networks), 0)
