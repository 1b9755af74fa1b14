"""How the bound falls as more draws are weighed together, as a picture."""

from __future__ import annotations

from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.measure import score_part, spread
from lmlab.measure.counted import count_within
from lmlab.page.figures import drawing, note, series_colour, standalone, svg
from lmlab.tasks.latent.measure import Bounded, model_of

DRAWS = (1, 2, 4, 8, 16, 32, 64, 128)
MEASURED_BYTES = 16_000  # spread over the test part


def draws_picture(run: Run, device: str) -> str:
    """Bits per byte, at most, by the number of draws of z for each segment: an SVG file."""
    model, part = model_of(run, device), run.corpus.test
    if not part.bytes:
        raise Mistake(f"{run.corpus.name} has no test part to draw the bounds of", code="no-test-part-for-bounds")
    chosen = spread(part, MEASURED_BYTES)

    def bits(draws: int, tighten: bool) -> float:
        read = score_part(Bounded(model, draws, tighten=tighten), run.tokenizer, chosen.part)
        return count_within(run.tokenizer, read, chosen).bits_per_byte

    trained, tight = bits(DRAWS[-1], tighten=False), [bits(draws, tighten=True) for draws in DRAWS]
    with drawing(6.4, 3.4) as (figure, axes):
        axes.axhline(trained, color=series_colour(None), linestyle="--")
        note(axes, "the bound it was trained on", (DRAWS[-1], trained), (0, 8), ha="right")
        axes.plot(DRAWS, tight, "o-", color=series_colour(0))
        axes.set_xscale("log", base=2)
        axes.set_xticks(DRAWS, [str(draws) for draws in DRAWS])
        axes.set_xlabel("draws of z for each segment, weighed together")
        axes.set_ylabel("bits per byte, at most")
        axes.grid(axis="y")
        return standalone(svg(figure, "The bound falls as more draws are weighed together"))
