"""`lmlab contract`: checks that a model satisfies the contract on which evaluation, decoding and compression rely."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.models import registry

if TYPE_CHECKING:
    from lmlab.promises import Finding

SECTION: Section = "Housekeeping"


def command(
    model: Annotated[str, typer.Argument(help="package.module:Class, or one of: " + ", ".join(registry.names()) + ".")],
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    json: options.Json = False,
) -> None:
    """Check a model class against the contract: small models of it, with every tokenizer, one promise at a time.

    The exit code is 1 if a promise is broken.

    Example: lmlab contract mypackage.models:MyModel --set width=16
    """
    registry.kind_of(model)
    from lmlab.config import parse_settings

    chosen = parse_settings(registry.model_class(model).Config, settings, model)
    findings = lmlab.contract(model, settings=chosen, watch=None if json else _print)
    broken = [finding for finding in findings if not finding.kept]
    if json:
        options.print_json({"model": model, "kept": not broken, "findings": [asdict(f) for f in findings]})
    else:
        print(f"{model}: {len(findings) - len(broken)} of {len(findings)} promises hold")
    if broken:
        raise typer.Exit(1)


def _print(finding: Finding) -> None:
    verdict = "holds" if finding.kept else "FAILS"
    print(
        f"{verdict}  {finding.promise} ({finding.tokenizer}){': ' * bool(finding.detail)}{finding.detail}", flush=True
    )
