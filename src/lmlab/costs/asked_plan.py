"""What `lmlab plan` was asked for, made whole: parameters and tokens, a rate, devices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.costs.asked_count import count
from lmlab.costs.counting import Count
from lmlab.costs.devices import DEVICES
from lmlab.costs.family import LETTERS
from lmlab.costs.planner import Plan, Rate, plan_of, published_rate
from lmlab.costs.published_laws import LAWS
from lmlab.costs.sharding import Build, usual_build
from lmlab.hardware.memory import available_bytes

THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
HERE = "this machine"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of the verb."""

    model: str | None = None
    settings: Mapping[str, Any] | None = None
    vocab: int | None = None
    parameters: str | None = None
    tokens: str | None = None
    compute: str | None = None
    loss: float | None = None
    law: str = "corrected"
    length: int | None = None
    device: str | None = None
    devices: int = 1
    rate: str | None = None
    memory: str | None = None
    calibrate: bool = False


def quantity(name: str, text: str | None) -> float | None:
    """A number such as 7B, 1.4T, 350M or 1e23; a Mistake if it is none, or not above 0."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE]\+?[0-9]+)?)\s*([kMBGTPE]?)\s*", text)
    value = float(match[1].replace("_", "")) * THOUSANDS[match[2]] if match else 0.0
    if not 0 < value < math.inf:
        raise Mistake(
            f"{{{name}}} is a number above 0, such as 7B, 350M or 1e21; got {text!r}",
            code="amount-not-understood",
            **{name: None},
        )
    return value


def plan(
    model: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    parameters: str | float | None = None,
    tokens: str | float | None = None,
    compute: str | float | None = None,
    loss: float | None = None,
    law: str = "corrected",
    length: int | None = None,
    device: str | None = None,
    devices: int = 1,
    rate: str | float | None = None,
    memory: str | float | None = None,
    calibrate: bool = False,
) -> Plan:
    """Time, device-hours, memory and sharding of a training run, with an interval.

    Give a model (or parameters) and tokens, or compute, or a loss; and a device by name, a rate, or calibrate: real steps here.
    Numbers may be written as "7B". vocab: tokens of the model's vocabulary, 256 if nothing is said.
    """
    asked = Asked(
        model=_text(model),
        settings=settings,
        vocab=vocab,
        parameters=_text(parameters),
        tokens=_text(tokens),
        compute=_text(compute),
        loss=loss,
        law=law,
        length=length,
        device=device,
        devices=devices,
        rate=_text(rate),
        memory=_text(memory),
        calibrate=calibrate,
    )
    if asked.law not in LAWS:
        raise Mistake(f"{{law}} is one of {', '.join(LAWS)}; got {asked.law!r}", code="law-unknown", law=None)
    if asked.devices < 1:
        raise Mistake(
            "{devices} is a whole number from 1 up: nothing runs on none", code="devices-below-one", devices=None
        )
    if asked.loss is not None and not 0 < asked.loss < math.inf:
        raise Mistake(f"{{loss}} is in nats a token, above 0; got {asked.loss:g}", code="loss-not-positive", loss=None)
    if asked.length is not None and asked.length < 1:
        raise Mistake(
            f"{{length}} is a whole number of tokens from 1 up; got {asked.length}",
            code="plan-length-below-one",
            length=None,
        )
    counted = _counted(asked)
    build, tokens, operations, notes = _work(asked, counted)
    found, room, name = _rate(asked)
    if asked.device is not None and asked.rate is None:
        notes.append("published hours, of which some include restarts and other work, make the interval: docs/costs.md")
    return plan_of(
        build=build,
        tokens=tokens,
        operations=operations,
        rate=found,
        device=name,
        devices=asked.devices,
        memory=room,
        notes=notes,
    )


def _counted(asked: Asked) -> Count | None:
    if asked.model is None:
        if asked.vocab is not None and not asked.calibrate:
            raise Mistake("{vocab} is of a model: name one, or leave it out", code="vocab-without-model", vocab=None)
        return None
    if asked.parameters is not None:
        raise Mistake(
            "a model has its own number of parameters: leave {parameters} or the model out",
            code="parameters-beside-model",
            parameters=None,
        )
    return count(asked.model, settings=asked.settings, vocab=asked.vocab, length=asked.length)


def _work(asked: Asked, counted: Count | None) -> tuple[Build, float, float, list[str]]:
    """What is built, on how many tokens, with how many operations."""
    law, length = LAWS[asked.law], asked.length or 2048
    parameters, tokens = quantity("parameters", asked.parameters), quantity("tokens", asked.tokens)
    compute, notes = quantity("compute", asked.compute), []
    if asked.loss is not None:
        if compute is not None or tokens is not None or parameters is not None or counted is not None:
            raise Mistake(
                "{loss} says how much is computed: leave the other sizes out", code="loss-beside-sizes", loss=asked.loss
            )
        compute = law.operations_for(asked.loss)
        if not compute < math.inf:
            raise Mistake(
                f"{{loss}} of {asked.loss:g} nats a token is reached by no amount of computing: the law ends at {law.E:g}",
                code="loss-below-the-law",
                loss=None,
            )
        notes.append(f"least computing for {asked.loss:g} nats a token by: {law.source}")
    if counted is not None:
        parameters, length = float(counted.parameters), counted.length or length
        per_token = (counted.forward + counted.backward) / length
        tokens = tokens if tokens is not None else (None if compute is None else compute / per_token)
        if tokens is None:
            raise Mistake(
                "say how much the model reads: {tokens} or {compute}",
                code="nothing-to-read",
                tokens="1B",
                compute="1e18",
            )
        if counted.active is not None:
            notes.append(
                f"{counted.active:.3g} of the parameters work on a token; the laws of the loss are of models without experts"
            )
        return _build_of(counted, length), tokens, per_token * tokens, notes
    if compute is not None and parameters is None and tokens is None:
        parameters, tokens = law.best_split(compute)
        notes.append(f"size and text of least loss for that computing by: {law.source}")
    elif compute is not None and (parameters is None) != (tokens is None):
        tokens = tokens or compute / 6 / (parameters or 1.0)
        parameters = parameters or compute / 6 / tokens
    if parameters is None or tokens is None or (compute is not None and asked.parameters and asked.tokens):
        raise Mistake(
            "give {parameters} and {tokens}, or one of them with {compute}, or {compute} or {loss} alone",
            code="sizes-not-enough",
            parameters="7B",
            tokens="1T",
            compute="1e23",
            loss="2.0",
        )
    build = usual_build(parameters, length)
    pairs = 12.0 * build.layers * build.width * length  # scores and averages, forward and backward
    operations = compute if compute is not None else (6 * parameters + pairs) * tokens
    return build, tokens, operations, notes


def _build_of(counted: Count, length: int) -> Build:
    sizes = {LETTERS[name]: value for name, value in counted.settings.items() if name in LETTERS}
    layers, width = sizes.get("L", 1), sizes.get("D", 1)
    return Build(parameters=float(counted.parameters), layers=int(layers), width=int(width), length=length)


def _rate(asked: Asked) -> tuple[Rate, float | None, str]:
    """(rate, memory of a device, its name)."""
    memory, given = quantity("memory", asked.memory), quantity("rate", asked.rate)
    if sum((given is not None, bool(asked.calibrate), asked.device is not None)) > 1 and not (
        given is not None and asked.device is not None and not asked.calibrate
    ):
        raise Mistake(
            "{calibrate} times this machine: leave {device} and {rate} out",
            code="calibrate-beside-device",
            calibrate=True,
            device=None,
            rate=None,
        )
    if asked.device is not None and asked.device not in DEVICES:
        raise Mistake(
            f"{{device}} {asked.device!r} is not known by name; {nearest(asked.device, DEVICES)}",
            code="device-unknown-by-name",
            device=None,
        )
    if asked.calibrate:
        from lmlab.costs.calibrate import machine_rate

        kind = asked.model if asked.model and not Path(asked.model).exists() else None
        rate = machine_rate(kind, dict(asked.settings or {}), 256 if asked.vocab is None else asked.vocab, "auto")
        return rate, memory or available_bytes(), HERE
    if given is not None:
        if asked.device is not None and given > DEVICES[asked.device].peak:
            raise Mistake(
                f"a {{rate}} above what {asked.device} can reach, {DEVICES[asked.device].peak / 1e12:g}T; give the rate"
                " of one device",
                code="rate-above-peak",
                rate=None,
            )
        known = DEVICES[asked.device].memory if asked.device else None
        scatter = published_rate("A100").times
        return (
            Rate(given, scatter, "given; published runs differ that much"),
            memory or known,
            asked.device or "as given",
        )
    if asked.device is None:
        raise Mistake(
            "name a {device}, give its {rate} in operations a second, or time this machine with {calibrate}",
            code="no-device",
            device="A100",
            rate="150T",
            calibrate=True,
        )
    return published_rate(asked.device), memory or DEVICES[asked.device].memory, asked.device


def _text(value: object) -> str | None:
    return None if value is None else str(value)
