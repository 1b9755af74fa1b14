from __future__ import annotations

import json
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import process_cheats
import pytest

import lmlab as lab
from lmlab.comparison.measure_run import measure_run
from lmlab.config import Mistake
from lmlab.hardware.sandbox import close_files_and_network
from lmlab.learn.run import Run
from lmlab.measure import Result
from processes import FORKED
from some_text import some_lines

TIMES, CAUGHT = 20, 19
CHEATS = [*(f"process_cheats:{name}" for name in process_cheats.NAMES), "replacing_cheats:Replaces"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of a model of one's own, to be measured on a long document and many short ones."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "train.txt").write_text(some_lines(200, seed=1))
    (folder / "valid.txt").write_text(some_lines(20, seed=2))
    (folder / "test").mkdir()
    for number in range(30):
        (folder / "test" / f"{number:02}.txt").write_text(some_lines(60 if number == 0 else 4, seed=100 + number))
    return lab.train("process_cheats:Honest", **texts_of(folder), out=folder / "run")


def texts_of(folder: Path) -> dict[str, Any]:
    return {"text": folder / "train.txt", "valid": folder / "valid.txt", "test": folder / "test"}


def as_another(run: Run, name: str, folder: Path, **config: object) -> Run:
    """The same run, which says that it is of another kind."""
    shutil.copytree(run.folder, folder / "run", dirs_exist_ok=True)
    path = folder / "run" / "run.json"
    record = json.loads(path.read_text())
    record["model"] |= {"name": name, "config": record["model"]["config"] | config}
    path.write_text(json.dumps(record))
    return lab.load(folder / "run")


def measured(run: Run) -> Result:
    return measure_run(run, run.corpus.test, name="")


@pytest.fixture(scope="module")
def honest_result(honest: Run) -> Result:
    return measured(honest)


def test_an_honest_model_of_ones_own_is_certified_and_does_not_speak_for_itself(
    honest: Run, honest_result: Result
) -> None:
    result = honest_result
    assert result.certificate.failures == result.certificate.not_known == []
    assert result.model["name"] == "process_cheats:Honest"
    assert result.model["parameters"] == sum(tensor.numel() for tensor in honest.weights().values()) > 7
    assert not any("independent body" in note for note in result.notes)
    assert len(result.model["hash"]) == 64
    assert honest.record.model.parameters == result.model["parameters"]


@pytest.mark.parametrize("name", CHEATS)
def test_who_uses_its_process_gets_no_certificate(
    name: str, honest: Run, honest_result: Result, tmp_path: Path
) -> None:
    run = as_another(honest, name, tmp_path)
    result = measured(run)
    if "LeavesANote" in name:  # the second time it would find the note
        result = measured(run)
    assert result.bits_per_byte < 0.9 * honest_result.bits_per_byte  # or there would be nothing to see
    assert "score_is_probability" in result.certificate.failures


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_who_uses_its_process_is_seen_19_times_in_20(name: str, honest: Run, tmp_path: Path) -> None:
    run = as_another(honest, name, tmp_path)
    assert sum(bool(measured(run).certificate.failures) for _ in range(TIMES)) >= CAUGHT


def test_nothing_of_the_module_is_loaded_by_who_measures(honest: Run, tmp_path: Path) -> None:
    lab.evaluate(as_another(honest, "replacing_cheats:Replaces", tmp_path))
    assert "replacing_cheats" not in sys.modules


def test_a_part_of_a_mix_that_remembers_is_seen(honest: Run, tmp_path: Path) -> None:
    part = as_another(honest, "process_cheats:Remembers", tmp_path)
    bag = lab.train("bag", **texts_of(honest.folder.parent), out=tmp_path / "bag")
    mixed = lab.mix([part, bag], out=tmp_path / "mix", adapt=True)
    result = measured(mixed)
    assert "score_is_probability" in result.certificate.failures
    assert result.model["name"] == "mix"
    assert not any("independent body" in note for note in result.notes)


def test_a_text_in_the_settings_of_ones_own_model_is_found(honest: Run, tmp_path: Path) -> None:
    hint = honest.corpus.test.text()
    result = measured(as_another(honest, "process_cheats:Honest", tmp_path, hint=hint))
    assert result.certificate.failures == ["held_out"]
    assert "stands in the settings" in result.held_out.detail


@pytest.mark.parametrize(
    ("name", "said"), [("Fails", "failed while it was measured: ValueError: nothing works"), ("Ends", "ended")]
)
def test_code_that_fails_is_told_in_one_line_and_the_next_model_is_measured(
    name: str, said: str, honest: Run, tmp_path: Path
) -> None:
    with pytest.raises(Mistake, match=said):
        measured(as_another(honest, f"process_cheats:{name}", tmp_path))
    assert measured(honest).certified


def attempts(folder: Path) -> list[str | None]:
    """What a process can still do that has closed files and the network."""
    found: list[str | None] = [close_files_and_network([str(folder)])]
    for attempt in (
        lambda: (folder / "module.py").read_text(),
        lambda: (folder / "text.txt").read_text(),
        lambda: str((folder / "new.txt").write_text("note")),
        lambda: Path("/proc/self/maps").read_text(),
    ):
        try:
            found.append(attempt())
        except OSError:
            found.append(None)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no Landlock")
def test_a_closed_process_reads_modules_and_no_texts(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("x = 1\n")
    (tmp_path / "text.txt").write_text("secret")
    with ProcessPoolExecutor(1, mp_context=FORKED) as pool:
        said, *found = pool.submit(attempts, tmp_path).result()
    if "files" not in str(said):
        pytest.skip("this kernel has no Landlock")
    assert found == ["x = 1\n", None, None, None]
