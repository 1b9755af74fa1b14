"""`lmlab.import_run`: a model of other tools as a run of lmlab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.exchange.imported_model import ImportedModel
    from lmlab.learn.run import Run


def import_run(source: str | Path, *, out: str | Path, spaced: bool = False) -> Run:
    """Make a run of a model of other tools: an n-gram model in an ARPA file, or the folder of a Transformer.

    The run holds copies of all weights. It can be evaluated, looked into and exported; a Transformer can be trained further.
    The text that the model was trained on stays unknown, and every result says so.

    Args:
        source: an ARPA file (`.arpa`, perhaps gzipped), or a Hugging Face folder.
        out: a new folder for the run.
        spaced: for an ARPA file, whether lines of text begin and end with a space, as in the Penn Treebank.

    Raises:
        Mistake: the source cannot be imported; the message says why.
    """
    from lmlab.learn.run_files import refuse_if_taken

    source, out = Path(source), Path(out)
    refuse_if_taken(out, can_go_on=False)
    if source.is_dir():
        from lmlab.exchange.import_folder import folder_as_native

        if spaced:
            raise Mistake("{spaced} is for ARPA files; leave it out", code="spaced-of-a-folder", spaced=True)
        return _written(folder_as_native(source), source, out)
    from lmlab.exchange.import_arpa import ENDINGS, arpa_as_ngram, is_arpa

    if not source.is_file() or not is_arpa(source):
        what = "no such file or folder" if not source.exists() else "neither an ARPA file nor a folder"
        raise Mistake(
            f"{source}: {what}; name a Hugging Face folder, or a file that ends in {', '.join(ENDINGS)}",
            code="import-of-nothing",
        )
    return _written(arpa_as_ngram(source, spaced=spaced), source, out)


def _written(found: ImportedModel, source: Path, out: Path) -> Run:
    """Write the run."""
    from lmlab.identity import parameter_count
    from lmlab.learn.record import Inputs, Model, Record, Result, Training
    from lmlab.learn.run_files import create_run, finish_run
    from lmlab.text.fingerprint import Fingerprint

    corpus = {"name": f"a text that is not known ({source.name})", "parts": {}, "imported": str(source.resolve())}
    record = Record(
        task=found.task,
        inputs=Inputs(corpus=corpus, tokenizer=found.tokenizer.spec),
        model=Model(name=found.model.name, config=found.config, parameters=parameter_count(found.model)),
        training=Training(budget="", seed=0, device="cpu", precision="float32"),
    )
    run = create_run(out, record, found.tokenizer, [Fingerprint.unknown()])
    finish_run(run, found.model, dict(found.config), Result(status="finished", message=found.message))
    return run
