"""Terminal output of the parameter and operation counts of a model."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from lmlab.costs.counting import CONVENTION, Count, CountedPart
from lmlab.page.numbers import memory_size, short
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table


def print_count(found: Count, *, latex: bool = False) -> None:
    """Print the parts with their formulas, the sums, and whether the counts agree. latex: print formulas as LaTeX."""
    console = result_console()
    shown = {name: value for name, value in found.settings.items() if value is not None and not isinstance(value, list)}
    chosen = ", ".join(f"{name}={value}" for name, value in shown.items())
    say(console, f"{found.model}, V={found.vocab_size}: {chosen}")
    columns = [Column("part", left=True), Column("parameters", left=True), Column("number")]
    if found.length is not None:
        columns += [Column("forward", expendable=1), Column("backward", expendable=2)]
    print_table(console, columns, [_row(part, latex=latex) for part in found.parts], elsewhere="--json has them")
    say(console, f"# parameters = {found.latex if latex else found.formula} = {found.parameters:,}{_instance(found)}")
    if found.active is not None:
        say(console, f"# parameters that a token uses = {found.active_formula} = {found.active:,}")
    if found.length is not None:
        _print_operations(console, found)
    if found.memory is not None:
        _print_memory(console, found.memory)
    for said in found.documents:
        left_out = f"{said.left_out}{_is(said.left_out_number)}"
        rest = f"leaves out {left_out}: {said.why}" if said.left_out != "0" else "the same"
        say(console, f"{said.source}, {said.part}: {said.formula}{_is(said.number)} ({rest})")
    for note in found.notes:
        say(console, note)


def _is(number: int | None) -> str:
    return "" if number is None else f" = {number:,}"


def _print_memory(console: Console, memory: Mapping[str, int]) -> None:
    say(console, f"Memory of a training step of {memory['rows']} rows of {memory['length']} tokens:")
    named = {name: memory[name] for name in ("weights", "gradients", "optimizer", "activations", "logits")}
    say(console, "  " + ", ".join(f"{name} {memory_size(size)}" for name, size in named.items()))
    measured = f", measured {memory_size(memory['measured_peak'])}" if "measured_peak" in memory else ", not measured"
    say(console, f"  peak: predicted {memory_size(memory['peak'])}{measured}")
    say(console, f"  remembered of one text while writing: {memory['remembered']:,} bytes")


def _row(part: CountedPart, *, latex: bool) -> list[str]:
    formula = part.latex if latex else part.formula
    operations = [short(each or None) for each in (part.forward, part.backward)]
    several = f"{part.times} × ({formula})" if part.times != 1 else formula
    return [part.name, several, f"{part.times * part.weights:,}", *operations]


def _instance(found: Count) -> str:
    if found.instance is None:
        return ""
    if found.instance == found.parameters:
        return "; a real instance has as many"
    return f"; but a real instance has {found.instance:,}"


def _print_operations(console: Console, found: Count) -> None:
    assert found.length is not None
    what = found.reads.format(f"{found.length:,}")
    each = f"; {(found.forward + found.backward) / found.length:,.0f} a token" if "{}" in found.reads else ""
    say(console, f"Operations of {what}: forward {found.forward:,}, backward {found.backward:,}{each}")
    for part in found.parts:
        if part.forward:
            back = "twice that" if part.backward == 2 * part.forward else part.backward_formula
            say(console, f"  {part.name}: forward {part.forward_formula}; backward {back}", style="dim")
    counts = ""
    if found.dispatched is not None:
        same = found.dispatched == (found.forward, found.backward)
        counts = f"PyTorch counts {'the same' if same else '{:,} and {:,}'.format(*found.dispatched)}. "
    say(console, counts + CONVENTION, style="dim")
