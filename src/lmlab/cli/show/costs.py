"""What a model costs, in the terminal."""

from __future__ import annotations

from rich.table import Table

from lmlab.cli.show.console import result_console
from lmlab.costs.counting import CONVENTION, Count, CountedPart
from lmlab.page.numbers import short


def print_count(found: Count, *, latex: bool = False) -> None:
    """The parts with their formulas, the sums, and whether the ways of counting agree."""
    console = result_console()
    chosen = ", ".join(f"{name}={value}" for name, value in found.settings.items() if value is not None)
    console.print(f"{found.model}, V={found.vocab_size}: {chosen}", markup=False)
    table = Table()
    for name in ("part", "parameters"):
        table.add_column(name, no_wrap=True)
    table.add_column("number", justify="right")
    if found.length is not None:
        table.add_column("forward", justify="right")
        table.add_column("backward", justify="right")
    for part in found.parts:
        formula = part.latex if latex else part.formula
        times = f"{part.times} × " if part.times != 1 else ""
        table.add_row(part.name, times + formula, f"{part.times * part.weights:,}", *_work(found, part))
    console.print(table)
    console.print(f"# parameters = {found.latex if latex else found.formula}", markup=False, soft_wrap=True)
    console.print(f"             = {found.parameters:,}{_instance(found)}", markup=False)
    if found.length is not None:
        _print_operations(found)
    for said in found.documents:
        rest = f"leaves out {said.left_out}: {said.why}" if said.left_out != "0" else "the same"
        console.print(f"{said.source}, {said.part}: {said.formula} ({rest})", markup=False, soft_wrap=True)
    for note in found.notes:
        console.print(note, markup=False, soft_wrap=True)


def _work(found: Count, part: CountedPart) -> list[str]:
    return [] if found.length is None else [short(each or None) for each in (part.forward, part.backward)]


def _instance(found: Count) -> str:
    if found.instance is None:
        return ""
    if found.instance == found.parameters:
        return "; a real instance has as many"
    return f"; but a real instance has {found.instance:,}"


def _print_operations(found: Count) -> None:
    console = result_console()
    assert found.length is not None
    both = found.forward + found.backward
    console.print(
        f"Operations of a sequence of {found.length:,} tokens: forward {found.forward:,}, backward {found.backward:,};"
        f" {both / found.length:,.0f} a token",
        markup=False,
        soft_wrap=True,
    )
    if found.dispatched is not None:
        same = found.dispatched == (found.forward, found.backward)
        counts = "the same" if same else "{:,} and {:,}".format(*found.dispatched)
        console.print(f"PyTorch counts {counts}. {CONVENTION}", markup=False, soft_wrap=True, style="dim")
    for part in found.parts:
        if part.forward:
            back = "twice that" if part.backward == 2 * part.forward else part.backward_formula
            console.print(
                f"  {part.name}: forward {part.forward_formula}; backward {back}",
                markup=False,
                soft_wrap=True,
                style="dim",
            )
