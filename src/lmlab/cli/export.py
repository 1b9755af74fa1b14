"""`lmlab export`: a trained model in a form that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a trained n-gram model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The ARPA file to write.")],
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write an n-gram model as an ARPA file, which KenLM, SRILM and others read with the same log-probabilities.

    Tokens are written as they are; white space inside one, as in a character model, as \\x20 and the like.

    Example: lmlab export runs/ngram -o model.arpa
    """
    options.refuse_if_taken(out, force)
    from lmlab.exchange.arpa import write_arpa
    from lmlab.learn.run import load_run
    from lmlab.models.ngram import NGram

    loaded = load_run(run)
    model = loaded.model
    if not isinstance(model, NGram):
        raise ValueError(f"{run} holds a {model.name} model; only ngram models can be written as an ARPA file")
    write_arpa(model, loaded.tokenizer.vocabulary, out)
    counts = [len(level.logp) for level in model.tables.levels]
    if json:
        options.print_json({"output": str(out), "format": "arpa", "bytes": out.stat().st_size, "ngrams": counts})
    else:
        orders = ", ".join(f"{count:,} of order {k}" for k, count in enumerate(counts, start=1))
        print(f"{out}: {out.stat().st_size:,} bytes, n-grams: {orders}")
