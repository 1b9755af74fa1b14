"""The card of an exported model: what it is, how well it predicts, what it cost, and how to check both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.identity import parameter_count
from lmlab.measure import evaluate, spread
from lmlab.measure.result import Result
from lmlab.measure.walk import Copies

if TYPE_CHECKING:
    from lmlab.learn.run import Run

MOST_BYTES = 1 << 18  # of the test part that are measured for a card


def model_card(run: Run, architecture: str) -> str:
    """Return the text of README.md for an exported run."""
    record, corpus = run.record, run.record.inputs.corpus
    model = run.model
    parts = corpus["parts"]
    data = f"{corpus['name']}"
    if "train" in parts:
        data += f", {parts['train']['bytes']:,} bytes of it for training (SHA-256 `{parts['train']['sha256']}`)"
    cost = f"{record.result.tokens:,} tokens in {record.result.seconds:,.0f} s"
    if run.training_flops is not None:
        cost += f", {run.training_flops:.3g} FLOPs"
    settings = "\n".join(f"- {key}: {value}" for key, value in record.model.config.items() if value is not None)
    return f"""---
library_name: transformers
pipeline_tag: text-generation
---

# {record.model.name} on {corpus["name"]}

A `{record.model.name}` of lmlab {record.lmlab} as a `{architecture}` with {parameter_count(model):,} parameters.

    from transformers import AutoModelForCausalLM, AutoTokenizer
    model, tokenizer = AutoModelForCausalLM.from_pretrained("."), AutoTokenizer.from_pretrained(".")

- **Data**: {data}
- **Training**: {cost}
- **Bits per byte**: {_bits(run)}

## How it differs from the run

- The tokenizer puts a begin symbol before every text and reads its spelling inside a text as text. The model gives it
  no probability.
- The model reads at most {model.policy.window} inputs. lmlab moves the window on; `generate` of transformers does not, so
  generate at most {model.policy.window} tokens.
- Weights are float32. Rounded to bf16, log-probabilities move by about 0.1 nats.

## Check

Log-probabilities of this folder and of the run agreed to 1e-4 nats when it was written. To measure it again, with all checks:

    lmlab eval . TEXT

## Settings

{settings}
"""


def _bits(run: Run) -> str:
    """The measured number with its interval and verdict; or why there is none."""
    try:
        part = run.corpus.parts["test"]
    except (Mistake, OSError) as error:
        return f"not measured ({str(error).splitlines()[0]})"
    if not part.bytes:
        return "not measured (the text has no test part)"
    found: Result = evaluate(
        run.model,
        run.tokenizer,
        spread(part, MOST_BYTES),
        name=run.corpus.name,
        copies=lambda: Copies(run.model, lambda: run.load_again("cpu")),
        learned_from=run.learned_from,
        at_hand=run.training_text,
    )
    interval = ""
    if found.interval.low is not None and found.interval.high is not None:
        interval = f" (95% interval {found.interval.low:.4f} to {found.interval.high:.4f})"
    return (
        f"{found.bits_per_byte:.4f}{interval} on {found.data['bytes']:,} bytes of the test part; {found.certificate.verdict};"
        f" {found.context}"
    )
