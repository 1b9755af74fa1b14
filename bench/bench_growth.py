"""How attention grows with length and width: operations as counted, their powers beside the theory, and measured time.

    python bench/bench_growth.py [--svg docs/costs/growth.svg]

Powers of measured time are of this machine and these sizes: small products run below full speed, so time grows more slowly than
operations at first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from lmlab.costs.figures import growing
from lmlab.costs.growth import crossing, fitted_power, growths
from lmlab.models.registry import model_class
from lmlab.page.figures import standalone
from lmlab_derive.shared.html import write

LENGTHS, WIDTHS, WRITTEN = (1024, 2048, 4096), (512, 1024, 2048), (64, 128, 256)
ROUNDS = 3


def attention(queries: int, memory: int, width: int) -> Callable[[], None]:
    w = torch.randn(width, width)
    q, m = torch.randn(queries, width), torch.randn(memory, width)

    def once() -> None:
        _ = ((q @ w) @ (m @ w).T).softmax(-1) @ (m @ w) @ w

    return once


def writing(tokens: int, *, cache: bool) -> Callable[[], None]:
    cls = model_class("gpt")
    config = cls.Config(layers=1, width=64, heads=1, context=tokens + 1, stride=1, tie=False, dropout=0.0)
    model = cls(config, 64).eval()
    text_BT = torch.zeros(1, tokens, dtype=torch.long)

    def once() -> None:
        _, state = model.begin(1)
        for t in range(tokens):
            if cache:
                _, state = model.advance(text_BT[:, t : t + 1], state)
            else:
                model.advance(text_BT[:, : t + 1], model.begin(1)[1])

    return once


def fastest(work: Callable[[], None]) -> float:
    taken = []
    for _ in range(ROUNDS):
        before = time.perf_counter()
        work()
        taken.append(time.perf_counter() - before)
    return min(taken)


def timed(name: str, sizes: Sequence[int], work: Callable[[int], Callable[[], None]]) -> None:
    seconds = [fastest(work(size)) for size in sizes]
    shown = ", ".join(f"{size}: {s * 1e3:.1f} ms" for size, s in zip(sizes, seconds, strict=True))
    print(f"  {name:40} power {fitted_power(sizes, seconds):.2f} ({shown})")


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--svg", type=Path)
    asked = parser.parse_args()
    found = growths()
    print("counted operations")
    for growth in found:
        print(f"  {f'{growth.name} in {growth.along}':40} power {growth.power:.3f}, theory {growth.theory:g}")
    print(f"scores and averages overtake the projections at {crossing(512)} tokens of width 512: at twice the width")
    if asked.svg:
        write(asked.svg, standalone(growing(found)))
    print("measured time")
    timed("encoder or decoder in length, width 64", LENGTHS, lambda n: attention(n, n, 64))
    timed("cross in queries, 1024 tokens, width 64", LENGTHS, lambda n: attention(n, 1024, 64))
    timed("encoder in width, 8 tokens", WIDTHS, lambda k: attention(8, 8, k))
    timed("writing with a cache", WRITTEN, lambda n: writing(n, cache=True))
    timed("writing without a cache", WRITTEN, lambda n: writing(n, cache=False))


if __name__ == "__main__":
    main()
