"""The attention sandbox: keys that vary, one head that is asked for two values, and two heads.

Key a points along μ_a, key b along μ_b, the others at right angles to both. The query of one head is x μ_a + y μ_b; two heads
are asked x μ_a and y μ_b, and their outputs averaged. Noise adds to every key; on top of it the length of key a varies:
k_a = (1 + γ) μ_a + noise. Values are points of the unit circle, so that an output can be drawn.

sandbox.js says the same for the page, and a browser test holds the two together to 1e-6: every number here, the random ones
too, follows from the settings by operations that both languages have.

Shapes: S samples, N keys, 2 the plane that μ_a and μ_b span, to which scores alone are sensitive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lmlab.config import Mistake, checked_seed
from lmlab.records import JsonRecord, in_json

Numbers: TypeAlias = NDArray[np.float64]

MOST_KEYS = 10
STRIDE = 1 + 2 * MOST_KEYS  # normals of a sample: γ, then two for each key
BINS = 25
FAR, NODES = 9.0, 4001  # a normal variable is integrated from -FAR to FAR
HALVINGS = 60
NEAR = (0.4, 0.6)  # shares of v_a that pass for an average of two
ALONE, LOST = 0.9, 0.1
RANGES: dict[str, tuple[float, float]] = {
    "keys": (2, MOST_KEYS),
    "query_a": (0, 20),
    "query_b": (0, 20),
    "temperature": (0.2, 5),
    "noise": (0, 0.5),
    "stretch": (0, 1),
    "overlap": (0, 0.9),
    "value_a": (0, 360),
    "value_b": (0, 360),
    "samples": (1, 100_000),
    "seed": (0, 2**32 - 1),
}


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """What can be set. `stretch` starts at a variance of one half."""

    keys: int = 5
    query_a: float = 10.0  # along μ_a, λ
    query_b: float = 10.0
    temperature: float = 1.0  # scores are divided by it
    noise: float = 0.0  # standard deviation of every entry of every key, √α
    stretch: float = math.sqrt(0.5)  # standard deviation of γ, by which the length of key a varies
    overlap: float = 0.0  # μ_a·μ_b; 0: at right angles
    value_a: float = 180.0  # degrees on the unit circle
    value_b: float = 0.0
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise Mistake(
                    f"{{{name}}} is a number from {low:g} to {high:g}; got {value:g}",
                    code="sandbox-out-of-range",
                    **{name: None},
                )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How the share of v_a in the output is distributed, and how far the output is from ½(v_a + v_b)."""

    mean: float
    deviation: float
    near: float  # share of samples that are about half v_a
    alone: float  # … that are nearly v_a
    lost: float  # … that have next to nothing of v_a
    distance: float  # root mean square, in the plane of the values
    histogram: tuple[float, ...]  # shares of samples, by the share of v_a from 0 to 1


@dataclass(frozen=True, kw_only=True)
class Heads:
    """What came out over samples, and by the closed forms, which leave `noise` out.

    They are exact where noise is 0, whatever the queries, the temperature, the overlap and the number of keys; with noise in
    every key they say what would be without it, and not what is sampled.
    """

    sampled: Seen
    closed: Seen


@dataclass(frozen=True, kw_only=True)
class Sandbox(JsonRecord):
    """One head and two under the same keys."""

    settings: SandboxSettings
    one: Heads
    two: Heads
    score_deviation: float  # of the score of a less that of b, in the one head: exact, whatever the noise

    @property
    @in_json
    def seed(self) -> int:
        """The seed of the samples, under the key that other documents have it."""
        return self.settings.seed


def sandbox(settings: SandboxSettings) -> Sandbox:
    """One head and two heads under the sampled keys, beside what closed forms say."""
    s = settings
    gamma_S, noise_SN2 = draws(s)
    quiet_N2 = np.zeros((s.keys, 2))
    target = values(s)[:2].mean(0)
    found = {}
    for name, heads in queries(s).items():
        weights_SN = averaged(s, heads, noise_SN2, gamma_S)
        sampled = _seen(s, weights_SN, np.full(s.samples, 1 / s.samples), target)
        found[name] = Heads(sampled=sampled, closed=_closed(s, partial(averaged, s, heads, quiet_N2), target))
    (query,) = queries(s)["one"]
    varied = (2 * s.noise**2 * float(query @ query) + (s.stretch * float(query[0])) ** 2) ** 0.5
    return Sandbox(settings=s, one=found["one"], two=found["two"], score_deviation=varied / s.temperature)


def queries(s: SandboxSettings) -> dict[str, Numbers]:
    """The query of the one head, and those of the two, in the plane of μ_a = (1, 0) and μ_b."""
    along_a = np.array([s.query_a, 0.0])
    along_b = s.query_b * np.array([s.overlap, math.sqrt(1 - s.overlap**2)])
    return {"one": np.array([along_a + along_b]), "two": np.array([along_a, along_b])}


def attend(s: SandboxSettings, gamma_S: Numbers, noise_N2: Numbers, query_2: Numbers) -> Numbers:
    """Attention weights S×N of one head."""
    scores_SN = s.noise * np.broadcast_to(noise_N2 @ query_2, (len(gamma_S), s.keys)).copy()
    scores_SN[:, 0] += (1 + gamma_S) * query_2[0]
    scores_SN[:, 1] += s.overlap * query_2[0] + math.sqrt(1 - s.overlap**2) * query_2[1]
    scores_SN /= s.temperature
    powers_SN = np.exp(scores_SN - scores_SN.max(1, keepdims=True))
    return np.asarray(powers_SN / powers_SN.sum(1, keepdims=True))


def averaged(s: SandboxSettings, heads: Numbers, noise_N2: Numbers, z_S: Numbers) -> Numbers:
    """Weights S×N of the average of several heads, key a longer by z deviations."""
    return np.asarray(np.mean([attend(s, s.stretch * z_S, noise_N2, query) for query in heads], axis=0))


def values(s: SandboxSettings) -> Numbers:
    """Points N×2 of the unit circle: v_a and v_b where they were put, the others on an arc above."""
    others = s.keys - 2
    degrees = [s.value_a, s.value_b, *(30 + 120 * (j + 0.5) / others for j in range(others))]
    radians = np.array(degrees) * math.pi / 180
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def draws(s: SandboxSettings) -> tuple[Numbers, Numbers]:
    """Standard normals: one for the length of key a of every sample, S, and two for every key, S×N×2."""
    z = normals(s.seed, s.samples * STRIDE).reshape(s.samples, STRIDE)
    return z[:, 0], z[:, 1 : 1 + 2 * s.keys].reshape(s.samples, s.keys, 2)


def normals(seed: int, count: int) -> Numbers:
    """So many standard normals, by the formula of Box and Muller from two uniforms each; the page draws the same."""
    u = (uniforms(seed, 2 * count) + 0.5) / 2**32
    return np.sqrt(-2 * np.log(u[0::2])) * np.cos(2 * math.pi * u[1::2])


def uniforms(seed: int, count: int) -> Numbers:
    """Whole numbers below 2³², a hash of the seed and of each one's place: the generator mulberry32, which needs no memory."""
    place = np.arange(1, count + 1, dtype=np.uint32)
    t = np.uint32(seed * 0x9E3779B1 % 2**32) + place * np.uint32(0x6D2B79F5)
    t = (t ^ (t >> np.uint32(15))) * (t | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    return (t ^ (t >> np.uint32(14))).astype(np.float64)


def _seen(s: SandboxSettings, weights_SN: Numbers, share_S: Numbers, target_2: Numbers) -> Seen:
    """Of samples that count for these shares of the whole."""
    of_a = weights_SN[:, 0]
    mean = float(share_S @ of_a)
    off_S2 = weights_SN @ values(s) - target_2
    place = np.minimum((of_a * BINS).astype(np.int64), BINS - 1)
    return Seen(
        mean=mean,
        deviation=math.sqrt(float(share_S @ (of_a - mean) ** 2)),
        near=float(share_S @ ((of_a > NEAR[0]) & (of_a <= NEAR[1]))),
        alone=float(share_S @ (of_a > ALONE)),
        lost=float(share_S @ (of_a <= LOST)),
        distance=math.sqrt(float(share_S @ (off_S2**2).sum(1))),
        histogram=tuple(float(n) for n in np.bincount(place, weights=share_S, minlength=BINS)),
    )


def _closed(s: SandboxSettings, weights: Callable[[Numbers], Numbers], target_2: Numbers) -> Seen:
    """Without noise every output is a function of γ alone, and the share of v_a grows with it.

    Moments are integrals over the normal density of γ (the trapezoidal rule, whose error is below rounding for functions as
    smooth as these); shares of samples are values of the normal distribution function where the share of v_a crosses a limit.
    """
    nodes = np.linspace(-FAR, FAR, NODES)
    density = np.exp(-(nodes**2) / 2)
    moments = _seen(s, weights(nodes), density / density.sum(), target_2)

    def above(limit: float) -> float:
        """The probability that the share of v_a is above the limit."""

        def is_above(z: float) -> bool:
            return bool(weights(np.array([z]))[0, 0] > limit)

        if is_above(-FAR):
            return 1.0
        if not is_above(FAR):
            return 0.0
        low, high = -FAR, FAR
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_above(middle) else (middle, high)
        return 0.5 * math.erfc(high / math.sqrt(2))

    edges = [1.0, *(above(i / BINS) for i in range(1, BINS)), 0.0]
    return Seen(
        mean=moments.mean,
        deviation=moments.deviation,
        near=above(NEAR[0]) - above(NEAR[1]),
        alone=above(ALONE),
        lost=1 - above(LOST),
        distance=moments.distance,
        histogram=tuple(left - right for left, right in pairwise(edges)),
    )
