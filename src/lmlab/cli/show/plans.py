"""Terminal output of training plans."""

from __future__ import annotations

from lmlab.costs.calibrate import Planned
from lmlab.costs.planner import Plan
from lmlab.page.numbers import short
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import print_list


def print_plan(found: Plan) -> None:
    """Print the cost of a training run, with the source of each number."""
    low, high = found.device_hours_interval
    lines = {
        "model": f"{short(found.parameters)} parameters, {short(found.tokens)} tokens",
        "operations": f"{found.operations:.3g}, a multiply-add being two",
        "rate": f"{found.rate:.3g} a second on {found.device} ({found.rate_source})",
        "device-hours": f"{_hours(found.device_hours)}, from {_hours(low)} to {_hours(high)} ({found.level:.0%} interval)",
        "time": f"{_time(found.hours)} on {found.devices:,}",
    }
    if found.sharding is not None and found.bytes_per_device is not None:
        lines["memory"] = f"{found.bytes_per_device / 1e9:,.1f} GB on each, {found.sharding}, one sequence at a time"
    laws = ", ".join(f"{loss:.3f} ({name})" for name, loss in found.loss.items())
    lines["loss"] = f"{laws} nats a token, by published laws for web text"
    print_list(lines)
    for note in found.notes:
        say(result_console(), note, style="dim")


def print_steps(found: Planned) -> None:
    """Print the estimated time of a run of a number of steps on this machine."""
    low, high = found.interval
    print_list(
        {
            "model": f"{found.model}, {found.parameters:,} parameters, {found.tokens:,} tokens in {found.steps:,} steps",
            "operations": f"{found.operations:.3g}, a multiply-add being two",
            "rate": f"{_moment(found.step_s)} a step, by {found.timed_steps:,} steps on {found.hardware}",
            "beside steps": f"{_moment(found.look_s)} a validation, {_moment(found.sample_s)} a sample,"
            f" {_moment(found.checkpoint_s)} a checkpoint",
            "time": f"{found.seconds:,.1f} s, from {low:,.1f} to {high:,.1f} ({found.level:.0%} interval)",
        }
    )


def _moment(seconds: float) -> str:
    return f"{seconds:,.3g} s" if seconds >= 0.9995 else f"{1000 * seconds:.3g} ms"


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def _time(hours: float) -> str:
    if hours < 1 / 60:
        return f"{hours * 3600:,.1f} seconds"
    if hours < 2:
        return f"{hours * 60:,.1f} minutes"
    return f"{hours:,.1f} hours" if hours < 72 else f"{hours / 24:,.1f} days"
