"""How surprised a model was by a token, as a colour: the same on every page."""

from __future__ import annotations

HEAT_BITS = (0.25, 0.75, 1.5, 2.5, 4.0, 6.0, 9.0)  # a token above the n-th has heat n


def heat(bits: float | None) -> int:
    """From 0 to the number of `HEAT_BITS`; None, or infinite: held impossible."""
    return len(HEAT_BITS) if bits is None else sum(bits > limit for limit in HEAT_BITS)


def scale() -> str:
    """What the colours mean, as HTML."""
    limits = [f"below {HEAT_BITS[0]:g}", *(f"{limit:g}" for limit in HEAT_BITS[:-1]), f"{HEAT_BITS[-1]:g}+"]
    boxes = "".join(f'<b class="s{level}">{limit}</b>' for level, limit in enumerate(limits))
    return f'<p class="scale">bits per token {boxes}</p>\n'
