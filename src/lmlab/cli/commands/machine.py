"""`lmlab machine`: reports the measured speed of this machine, and the choices that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.hardware.kept_figures import Rate
    from lmlab.hardware.report import MachineReport

SECTION: Section = "Housekeeping"


def command(
    again: Annotated[bool, typer.Option("--again", help="Repeat measurements that are already saved.")] = False,
    clear: Annotated[
        bool,
        typer.Option("--clear", help="Delete cached files that can be recreated; piped texts stay."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Report the measured speed of this machine, the choices that follow from it, versions and cache folders.

    Include the output in a bug report.
    """
    if clear and again:
        raise Mistake(
            "{clear} measures nothing; leave out {again}, or {clear}", code="clear-beside-again", clear=True, again=True
        )
    if clear:
        _clear(json)
        return

    found = lmlab.machine(again=again)
    options.answer(json, found, _print)


def _clear(json: bool) -> None:
    from lmlab.hardware import report
    from lmlab.page.numbers import counted

    was, stays = report.clear(), report.only_copies()
    freed = sum(kept.bytes for kept in was)
    if json:
        options.print_json({"cleared": [vars(kept) for kept in was], "bytes": freed, "left": vars(stays)})
        return
    print(f"Deleted {counted(sum(kept.files for kept in was), 'file')}, {_size(freed)}.")
    if stays.files:
        texts = f"{counted(stays.files, 'file')}, {_size(stays.bytes)}, in {stays.folder}"
        print(f"Left: {texts}: texts that came through a pipe, of which runs may have no other copy.")


def _print(report: MachineReport) -> None:
    from lmlab.page.numbers import counted
    from lmlab_derive.shared.console import result_console
    from lmlab_derive.shared.console import say as printed
    from lmlab_derive.shared.table import Column, print_each

    console = result_console()
    say = partial(printed, console)

    def where(rate: Rate) -> str:
        return f"cpu, {counted(rate.threads, 'thread')}" if rate.device == "cpu" else rate.device

    say(f"{report.versions['processor']}; {report.versions['system']}")
    if "gpu" in report.versions:
        say(report.versions["gpu"])
    if report.memory_bytes is not None:
        say(f"{_size(report.memory_bytes)} of memory available")
    say("")
    say("GFLOP/s of a training step, forward and backward, and of Muon's iteration")
    columns: list[tuple[Column, Callable[[Rate], str]]] = [
        (Column("device", left=True), where),
        (Column("precision", left=True), lambda rate: rate.precision),
        (Column("step"), lambda rate: f"{rate.products / 1e9:,.0f}" if rate.products else "crawls"),
        (Column("Muon"), lambda rate: f"{rate.iteration / 1e9:,.0f}" if rate.iteration else "crawls"),
    ]
    print_each(console, [rate for found in report.found for rate in found.rates], columns)
    for device in (device for found in report.found for device in found.devices):
        say(f"{device.device}: copies {device.copies / 1e9:,.0f} GB/s, a request {device.request_s * 1e6:.1f} µs")
    say("")
    say("Chosen")
    for choice in report.choices:
        say(f"  {choice.device}: {choice.what}: {choice.chosen} ({choice.why})")
    say("")
    say("Versions")
    say("  " + ", ".join(f"{k} {v}" for k, v in report.versions.items() if k not in ("processor", "system", "gpu")))
    say("")
    say(f"Kept in {report.cache} (lmlab machine --clear deletes all but what is in piped)")
    for kept in report.kept:
        say(f"  {Path(kept.folder).name}: {counted(kept.files, 'file')}, {_size(kept.bytes)}")
    for found in report.found:
        if found.trouble:
            say(f"  figures {found.trouble}")


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
