"""`lmlab plan`: estimates the duration of a training run, the devices it needs, and whether it fits in memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.config import Mistake, named_once
from lmlab.hardware.memory import keep_memory
from lmlab.learn.settings import parse_learning
from lmlab.models import registry

SECTION: Section = "Look inside"


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A model name or a config.json; without one, give --parameters.", autocompletion=completion.models
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(help="With --steps: the training text.", autocompletion=completion.texts),
    ] = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    vocab: Annotated[int | None, typer.Option(help="Vocabulary size.", show_default="256")] = None,
    parameters: Annotated[str | None, typer.Option(help="Number of parameters, such as 7B.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Training tokens, such as 1.4T.")] = None,
    compute: Annotated[str | None, typer.Option(help="Operations to spend, such as 1e23.")] = None,
    loss: Annotated[
        float | None, typer.Option(help="Target loss in nats per token, by a published scaling law.")
    ] = None,
    law: Annotated[str, typer.Option(help="Scaling law: chinchilla or corrected.")] = "corrected",
    length: Annotated[int | None, typer.Option(help="Sequence length in tokens.", show_default="2048")] = None,
    device: Annotated[
        str | None,
        typer.Option(help="V100, A100-40GB, A100, H100, H800, H200, B200 or TPUv4; with --steps cpu, cuda or mps."),
    ] = None,
    devices: Annotated[int, typer.Option(help="Number of devices.")] = 1,
    rate: Annotated[str | None, typer.Option(help="Achieved operations per second per device, such as 150T.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory per device in bytes, such as 80G.")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Time real steps on this machine.")] = False,
    steps: Annotated[
        int | None, typer.Option(help="With MODEL and TEXT: estimate the seconds of a run of this many steps.")
    ] = None,
    tokenizer: options.TokenizerOrNone = None,
    learning: options.Learning = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Estimate the time, device-hours, memory and sharding of a training run, with an interval.

    The rate is the mean utilization of published runs times the device's peak, or --rate, or the rate of real steps here.

    Example: lmlab plan --parameters 7B --tokens 1T --device A100 --devices 1024
    """
    chosen: dict[str, Any] = dict(pair.partition("=")[::2] for pair in named_once(settings))
    if model is not None and not model.endswith(".json"):
        options.check_model_name(model)
        from lmlab.config import parse_settings

        chosen = parse_settings(registry.model_class(model).Config, settings, model)
    from lmlab.cli.show.plans import print_plan, print_steps

    if (steps is None) != (text is None):
        raise Mistake(
            "a run on this machine is planned from a text and {steps}: give both, or none",
            code="plan-text-without-steps",
            steps=500,
        )
    if steps is not None:
        assert text is not None
        if model is None:
            raise Mistake(f"name a model to plan: {', '.join(registry.names())}", code="plan-without-model")
        other = {"parameters": parameters, "tokens": tokens, "compute": compute, "loss": loss, "length": length}
        other |= {"rate": rate, "memory": memory, "devices": None if devices == 1 else devices}
        if vocab is not None:
            raise Mistake(
                "a text has its own vocabulary, by its {tokenizer}: leave {vocab} out",
                code="vocab-beside-text",
                tokenizer=None,
                vocab=None,
            )
        if wrong := [name for name, value in other.items() if value is not None]:
            raise Mistake(
                f"{{steps}} is of a run on this machine: leave {{{wrong[0]}}} out",
                code="option-beside-steps",
                steps=None,
                **{wrong[0]: None},
            )
        if (device or "cpu").partition(":")[0] not in ("cpu", "cuda", "mps"):
            raise Mistake(
                f"{{steps}} is of a run on this machine, on cpu, cuda or mps; got {device!r}",
                code="plan-device-unknown",
                steps=None,
            )
        keep_memory()  # as `lmlab train` does; otherwise the timed steps would be slower than those of the run
        planned = lmlab.plan_steps(
            model,
            text,
            steps=steps,
            settings=chosen,
            learning=parse_learning(learning),
            tokenizer=tokenizer,
            device=device or "auto",
        )
        options.answer(json, planned, print_steps)
        return
    if learning or tokenizer is not None:
        raise Mistake(
            "{learning} and {tokenizer} are of a run of {steps} on a text",
            code="option-needs-steps",
            learning=None,
            tokenizer=None,
            steps=None,
        )
    if calibrate:
        keep_memory()
    found = lmlab.plan(
        model,
        settings=chosen,
        vocab=vocab,
        parameters=parameters,
        tokens=tokens,
        compute=compute,
        loss=loss,
        law=law,
        length=length,
        device=device,
        devices=devices,
        rate=rate,
        memory=memory,
        calibrate=calibrate,
    )
    options.answer(json, found, print_plan)
