"""`lmlab.explain` and its relatives: runs, given as such or by their folders, opened on a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lmlab.config import Mistake
from lmlab.inside import attention_section, figures, gates_section, pages, surprisal_section
from lmlab.inside.attention import Attention, attention_of, refuse_without_attention
from lmlab.inside.encoder_attention import across, around, pair_of
from lmlab.inside.explanation import Explanation
from lmlab.inside.gates import Gates, gates_of
from lmlab.inside.heads_switched_off import HeadCosts, heads_of
from lmlab.inside.matrix import AttentionMatrix, matrix_of
from lmlab.inside.openings import Attentive, AttentiveAcross, AttentiveAround, Gated
from lmlab.inside.passage import learned, passage
from lmlab.inside.search import SearchTree, search_tree
from lmlab.inside.sections import page
from lmlab.inside.surprisal import read_passage
from lmlab.learn.run import Run, opened
from lmlab.page.figures import standalone
from lmlab.page.notebook import panel
from lmlab.records import display
from lmlab_derive.shared.html import refuse_names, write

AnyRun = Run | str | Path


def explain(
    runs: AnyRun | Sequence[AnyRun],
    text: str | Path | None = None,
    *,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain()",
) -> Explanation:
    """How surprised one or several models are by every token of a text, what they expected and how sure they were.

    text: words, or the name of a file; None: a piece of what the first run was tested on.
    html: a page of it, with attention and gates where there are any. svg: a picture. command: what the page says made it.
    """
    refuse_names(html=html, svg=svg)
    given = [opened(run) for run in ([runs] if isinstance(runs, str) or not isinstance(runs, Sequence) else runs)]
    if not given:
        raise Mistake("name a run to look into, such as runs/mine", code="no-run-to-explain")
    for run in given:
        if isinstance(run.saved, AttentiveAround | AttentiveAcross):
            raise Mistake(
                f"{run.folder} holds a model of the kind {run.record.model.name}, which gives a text no probability token by"
                f" token; where it looks says: lmlab explain attention {run.folder}",
                code="run-without-token-probabilities",
            )
    found = passage(text, given[0])
    readings = tuple(read_passage(run, found, device=device) for run in given)
    explanation = Explanation(name=found.name, text=found.text, readings=readings)
    if html is not None:
        names = [surprisal_section.name_of(reading, readings) for reading in readings]
        sections = [surprisal_section.section(explanation)]
        for index, (run, name) in enumerate(zip(given, names, strict=True)):
            if isinstance(run.model, Attentive):
                looks = attention_of(run, found, device=device)
                sections += attention_section.sections(looks, index, name)
            if isinstance(run.model, Gated) and run.model.gate_names:
                sections.append(gates_section.section(gates_of(run, found, device=device), index, name))
        write(Path(html), page("A text, as models read it", surprisal_section.opening(explanation), sections, command))
    if svg is not None:
        write(Path(svg), standalone(figures.surprise(explanation)))
    return explanation


def explain_attention(
    run: AnyRun,
    text: str | Path | None = None,
    *,
    to: str | None = None,
    target: str | None = None,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_attention()",
) -> Attention:
    """What every attention head of a model looked at while it read a text, and what each seems to do. html: a page of it.

    Of an encoder all looks around, at a text in which [MASK] may hide tokens; of a translator also the looks from what it
    writes to the source. to: its language; target: the translation, where it is not to be the translator's own.
    """
    refuse_names(html=html, svg=svg)
    run = opened(run)
    found = _looks(run, text, to, target, device)
    if html is not None:
        name = run.folder.name
        opening = attention_section.opening(found, name, learned(run))
        write(Path(html), page(f"Where {name} looks", opening, attention_section.sections(found, 0, name), command))
    if svg is not None:
        write(Path(svg), standalone(figures.heads_map(found)))
    return found


def _looks(run: Run, text: str | Path | None, to: str | None, target: str | None, device: str) -> Attention:
    refuse_without_attention(run)
    if isinstance(run.saved, AttentiveAcross):
        sentence = None if text is None else passage(text, run).text
        return across(run, [pair_of(run, sentence, to=to, target=target, device=device)], device=device)
    for name, given in {"to": to, "target": target}.items():
        if given is not None:
            raise Mistake(
                f"{{{name}}} is for translators, and {run.folder} holds a model of the kind {run.record.model.name}",
                code="option-of-translators",
                **{name: None},
            )
    found = passage(text, run)
    return (around if isinstance(run.saved, AttentiveAround) else attention_of)(run, found, device=device)


def explain_gates(
    run: AnyRun,
    text: str | Path | None = None,
    *,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_gates()",
) -> Gates:
    """What the gates of a gru or an lstm did while it read a text, how long each unit keeps, and what it follows."""
    refuse_names(html=html, svg=svg)
    run = opened(run)
    found = gates_of(run, passage(text, run), device=device)
    if html is not None:
        name = run.folder.name
        opening = gates_section.opening(found, name, learned(run))
        write(Path(html), page(f"The gates of {name}", opening, [gates_section.section(found, 0, name)], command))
    if svg is not None:
        write(Path(svg), standalone(figures.unit_map(found)))
    return found


def explain_heads(
    run: AnyRun,
    text: str | Path | None = None,
    *,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_heads()",
) -> HeadCosts:
    """What a text costs more without each attention head, one at a time, beside what the head does.

    text: None: a piece of what the run was tested on; for a translator a file of pairs. The cost is in the task's own unit:
    bits per byte, per masked token of an encoder, per byte of a translator's targets.
    """
    refuse_names(html=html, svg=svg)
    run = opened(run)
    found = heads_of(run, text, device=device)
    if html is not None:
        write(Path(html), pages.heads_page(found, run.folder.name, command))
    if svg is not None:
        write(Path(svg), standalone(figures.costs_of_heads(found)))
    return found


def explain_search(
    run: AnyRun,
    prompt: str = "",
    *,
    tokens: int = 5,
    beam: int = 3,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_search()",
) -> SearchTree:
    """How greedy, beam and exhaustive search continue a prompt: the tree they walk, and where greedy loses."""
    refuse_names(html=html, svg=svg)
    run = opened(run)
    found = search_tree(run, prompt, tokens=tokens, beam=beam, device=device)
    if html is not None:
        write(Path(html), pages.search_page(found, run.folder.name, command))
    if svg is not None:
        write(Path(svg), standalone(figures.tree(found)))
    return found


def explain_matrix(
    run: AnyRun,
    text: str | Path,
    *,
    layer: int = 1,
    head: int = 1,
    device: str = "auto",
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_matrix()",
) -> AttentionMatrix:
    """The ND×ND matrix that one head (numbers from 1) amounts to for a text, its blocks a_nm W, and the parameters."""
    refuse_names(html=html, svg=svg)
    run = opened(run)
    found = matrix_of(run, passage(text, run), layer=layer, head=head, device=device)
    if html is not None:
        write(Path(html), pages.matrix_page(found, run.folder.name, command))
    if svg is not None:
        write(Path(svg), standalone(figures.matrices(found)))
    return found


def _shown_by(draw: Callable[[Any], str]) -> Callable[[Any], str]:
    def shown(found: Any) -> str:
        readings = getattr(found, "readings", ())
        facts = {surprisal_section.name_of(one, readings): f"{one.bits_per_byte:.4f} bits per byte" for one in readings}
        title = type(found).__name__ if readings else f"{type(found).__name__} of {found.run}"
        return panel(title, facts, standalone(draw(found)))

    return shown


for _kind, _draw in (
    (Explanation, figures.surprise),
    (Attention, figures.heads_map),
    (Gates, figures.unit_map),
    (HeadCosts, figures.costs_of_heads),
    (AttentionMatrix, figures.matrices),
    (SearchTree, figures.tree),
):
    display(_kind, _shown_by(_draw))
