"""`lmlab contract`: whether a model keeps the promises that measuring, decoding and compressing rely on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.models import registry


def command(
    model: Annotated[str, typer.Argument(help="package.module:Class, or one of: " + ", ".join(registry.names()) + ".")],
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    json: options.Json = False,
) -> None:
    """Hold a kind of model to the contract: small models of it, over every kind of tokenizer, promise by promise.

    The exit code is 1 if a promise is broken.

    Example: lmlab contract mypackage.models:MyModel --set width=16
    """
    registry.kind_of(model)
    from lmlab.config import parse_settings
    from lmlab.contract import run

    chosen = parse_settings(registry.model_class(model).Config, settings, model)
    findings = []
    for finding in run(model, chosen):
        findings.append(finding)
        if not json:
            verdict = "holds" if finding.kept else "FAILS"
            print(f"{verdict}  {finding.promise} ({finding.tokenizer}){': ' * bool(finding.detail)}{finding.detail}")
    broken = [finding for finding in findings if not finding.kept]
    if json:
        options.print_json({"model": model, "kept": not broken, "findings": [asdict(f) for f in findings]})
    else:
        print(f"{model}: {len(findings) - len(broken)} of {len(findings)} promises hold")
    if broken:
        raise typer.Exit(1)
