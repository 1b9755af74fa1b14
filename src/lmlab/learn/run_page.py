"""The HTML page of a run and its notebook display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmlab.learn.curve_figures import loss_curve
from lmlab.learn.run_advice import weights_warning
from lmlab.learn.undertrained import UNTOLD, too_short_to_tell
from lmlab.page.notebook import panel
from lmlab.page.numbers import counted, short
from lmlab.page.raw_bytes import about_broken
from lmlab_derive.shared import html

if TYPE_CHECKING:
    from lmlab.learn.run import Run

TRAINING_ABOVE = (
    "Training may lie above validation: each of its points is the mean since the last one, by weights that had learned less,"
    " and with dropout."
)


def run_page(run: Run, figure: str) -> str:
    """Return the HTML page of a run: facts, learning curve, generated samples, lineage and settings.

    Args:
        run: the trained run.
        figure: its learning curve as SVG.
    """
    record, result = run.record, run.record.result
    name, corpus = record.model.name, record.inputs.corpus["name"]
    facts = {
        "text": f"{corpus}, {record.inputs.corpus['parts']['train']['bytes']:,} bytes to learn from",
        "tokens": str(record.inputs.tokenizer),
        "parameters": f"{record.model.parameters:,}",
        "learned": f"{result.steps or 0:,} steps, {result.tokens:,} tokens, {result.seconds:.0f} s on {result.hardware}",
        "how it ended": f"{result.status}: {result.message}",
    }
    if best := _best(run):
        facts["best validation"] = best
    if result.training_flops is not None:
        facts["FLOPs"] = f"{short(result.training_flops)} of training, by formula; a multiply-add is two"
    settings = {key: str(value) for key, value in record.model.config.items()}
    parts = [f"<h1>{html.escape(name)} on {html.escape(corpus)}</h1>\n", html.facts(facts)]
    if result.undertrained is not None:
        parts.append(f"<p><strong>{html.escape(str(result.undertrained))}</strong></p>\n")
    elif result.status == "finished" and too_short_to_tell(run.metrics, record.training.earlier):
        parts.append(html.remark(f"{UNTOLD[0].upper()}{UNTOLD[1:]}."))
    caption = "Training and validation over steps. The weights with the best validation are kept."
    if result.best_step is not None and not _is_validated(run):
        kept = "those it began with" if result.status in ("diverged", "untrained") else "the last ones"
        caption = f"Training over steps. Nothing was validated, and the weights that are kept are {kept}."
    if extension_steps := record.training.extension_steps:
        at = " and ".join(f"{step:,}" for step in extension_steps)
        caption += (
            f" The run went on at step {at}: its learning rate rises again there, and with it the curve for a while."
        )
    if _training_is_above(run):
        caption += f" {TRAINING_ABOVE}"
    parts.append(html.figure(figure, caption))
    parts.append(html.remark(result.calibration_note and f"{result.calibration_note}."))
    if samples := run.samples:
        parts.append("<h2>What it wrote as it learned</h2>\n")
        parts.append(html.remark(about_broken(sample["text"] for sample in samples)))
        parts += [
            html.card(title, f'<pre class="sample" dir="auto">{html.escape(text)}</pre>')
            for title, text in _titled(samples)
        ]
    if lineage := record.training.lineage:
        origins = [
            f"{ancestor.run or 'this run'}: {ancestor.corpus}, a budget of {ancestor.budget},"
            f" {counted(ancestor.steps, 'step')}"
            for ancestor in lineage
        ]
        parts.append(f"<h2>Where its weights came from</h2>\n{html.listed(origins)}")
    parts.append(html.folded("Settings", html.facts(settings)))
    return html.document(f"{name} on {corpus}", "".join(parts))


def notebook_panel(run: Run) -> str:
    """Return the notebook display of a run: facts, learning curve and warnings about its weights."""
    record, result = run.record, run.record.result
    facts = {
        "text": f"{record.inputs.corpus['name']} in {record.inputs.tokenizer} tokens",
        "settings": ", ".join(f"{key}={value}" for key, value in record.model.config.items()),
        "budget": record.training.budget,
        "folder": str(run.folder),
    }
    if record.model.parameters is not None:
        facts["parameters"] = f"{record.model.parameters:,}"
    if result.steps is not None:
        facts["learned"] = f"{result.steps:,} steps, {result.tokens:,} tokens, {result.seconds:.0f} s"
    if result.training_flops is not None:
        facts["FLOPs"] = short(result.training_flops)
    # counting models have no curve, nor has a run that diverged before its first validation
    curve = run.metrics and loss_curve(run.metrics, record.model.name, run.unit, record.training.extension_steps)
    said = weights_warning(run) or str(result.undertrained or "")
    if _training_is_above(run):
        said = f"{said}{'. ' * bool(said)}{TRAINING_ABOVE}"
    return panel(f"{record.model.name}, {run.status}", facts, curve or "", said)


def _training_is_above(run: Run) -> bool:
    """Whether the last training loss lies above the validation loss beside it."""
    if not run.metrics:  # a count model
        return False
    key, last = run.unit.replace(" ", "_"), run.metrics[-1]
    train, valid = last.get(f"train_{key}"), last.get(f"valid_{key}")
    return train is not None and valid is not None and bool(train > valid)


def _titled(samples: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return samples as (title, text). The last is generated by the weights that are kept, and is not shown twice in a row."""
    *before, last = samples
    if before and before[-1] == last:
        before.pop()
    titled = [(f"step {sample['step']:,}", sample["text"]) for sample in before]
    return [*titled, (f"step {last['step']:,}, whose weights are kept", last["text"])]


def _is_validated(run: Run) -> bool:
    """Whether any weights were validated, so that the best could be kept."""
    return bool(run.metrics) and any(line[f"valid_{run.unit.replace(' ', '_')}"] is not None for line in run.metrics)


def _best(run: Run) -> str:
    """Return the validation loss of the weights that are kept, as text; empty if nothing was validated."""
    if not run.metrics:
        return ""
    key, step = f"valid_{run.unit.replace(' ', '_')}", run.record.result.best_step
    kept = next((line[key] for line in run.metrics if line["step"] == step and line[key] is not None), None)
    return "" if kept is None else f"{kept:.4f} {run.unit}, at step {step:,}"
