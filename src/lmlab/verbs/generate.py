"""`lmlab.generate`: generates texts with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lmlab import engine
from lmlab.engine import Generated
from lmlab.learn.run import Run, opened


def generate(
    run: Run | str | Path,
    prompt: str = "",
    *,
    method: str = "sample",
    tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    beam: int = 4,
    best: int = 1,
    length_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    samples: int = 1,
    seed: int = 0,
    precision: str = "float32",
    device: str = "auto",
    watch: Callable[[str], None] | None = None,
) -> list[Generated]:
    """Generate `samples` continuations of a prompt, or the `best` of a beam; `lmlab.engine.Options` explains the settings.

    Args:
        precision: precision of the weights during generation, "float32" or "bf16".
        watch: called with each piece of the text once the piece is final; only for a single text.
    """
    options: dict[str, Any] = {"method": method, "max_tokens": tokens, "temperature": temperature, "top_k": top_k}
    options |= {"top_p": top_p, "min_p": min_p, "beam_width": beam, "n_best": best, "length_penalty": length_penalty}
    options |= {"stop": stop, "samples": samples, "seed": seed}
    run = opened(run)
    model = run.load(device)
    with engine.as_verbs_call_them():
        if watch is None:
            return engine.generate(model, run.tokenizer, prompt, precision=precision, **options)
        pieces = engine.stream(model, run.tokenizer, prompt, precision=precision, **options)
        for piece in pieces:
            watch(piece)
        return [pieces.result]


def generate_many(
    run: Run | str | Path,
    prompts: Sequence[str],
    *,
    precision: str = "float32",
    device: str = "auto",
    **settings: Any,
) -> list[list[Generated]]:
    """Continue each prompt as `generate` does, with the same settings, in batches."""
    names = {called: name for name, called in engine.IN_VERBS.items()}
    run = opened(run)
    model = run.load(device)
    with engine.as_verbs_call_them():
        options = {names.get(name, name): value for name, value in settings.items()}
        return engine.generate_many(model, run.tokenizer, prompts, precision=precision, **options)
