"""Records of benchmarks: what was measured, on which machine, by which command; one JSON file for each run of a benchmark.

    asked = arguments(__doc__).parse_args()
    record = Recorder("decoding", "fast", asked, peers=("transformers",))
    record.compare("6x192", "Greedy decoding, 6 layers of width 192", our_seconds, their_seconds, "s", peer="transformers")

With `--write` the record is written to results/BENCHMARK/DATE-MACHINE.json after every measurement, so a benchmark that is
stopped early leaves what it measured. `newest` reads the records of a benchmark again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import lmlab.version
from lmlab.disk.files import write_atomically
from lmlab.records import from_json, to_json

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results"
QUESTIONS = {
    "fast": "Is it fast?",
    "accurate": "Is it accurate?",
    "intervals": "Are its intervals right?",
    "scale": "Does counting scale?",
    "design": "Why is it built this way?",  # not on the page of results: docs/notes shows these
}
FEATURES = {  # of processors, as the kernel names them, best first, and the short name of each
    "amx_tile": "amx",
    "avx512f": "avx512",
    "avx2": "avx2",
    "sve": "sve",
    "asimd": "neon",
}
BENCHMARK = "benchmark"  # the source of a record that a benchmark wrote
RANGE, INTERVAL = "range over repetitions", "95% interval"
COMMIT = "LMLAB_COMMIT"  # names the commit where the sources were copied without their git folder


@dataclass(frozen=True, kw_only=True)
class Machine:
    """This class is the machine that a benchmark ran on."""

    processor: str  # as lscpu names it
    architecture: str
    cores: int
    features: tuple[str, ...]
    gpu: str | None  # of a benchmark that ran on it

    @property
    def slug(self) -> str:
        """The machine as part of a file name."""
        if self.gpu is not None:
            return re.sub(r"[^a-z0-9]+", "-", self.gpu.lower()).strip("-")
        family = "x86" if self.architecture == "x86_64" else self.architecture
        return "-".join([family, *self.features[:1], f"{self.cores}core{'s' if self.cores > 1 else ''}"])

    @property
    def name(self) -> str:
        """The machine in words, short enough for a table."""
        if self.gpu is not None:
            return self.gpu
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        return ", ".join([self.processor, cores, *(feature.upper() for feature in self.features[:1])])


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """This class is one measured quantity, beside a peer's where there is one.

    `ratio` is how many times as good as the peer lmlab is: above 1, lmlab is better. `low` and `high` are of the ratio, or of
    the value where there is no peer; `spread` says what they are. `least` and `most` bound what is aimed at.
    """

    key: str  # unique in its record; pages refer to it
    what: str  # with its settings: size, precision, text
    unit: str  # of value and peer_value
    value: float | None = None
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    spread: str | None = None
    repetitions: int = 1
    least: float | None = None
    most: float | None = None

    @property
    def main(self) -> float | None:
        """The ratio; the value where there is no peer; None where only a range is known."""
        return self.value if self.ratio is None else self.ratio

    @property
    def missed(self) -> bool:
        """Whether the measurement is outside what is aimed at."""
        ends = [end for end in ((self.low, self.high) if self.main is None else (self.main,)) if end is not None]
        low = self.least is not None and min(ends) < self.least
        return low or (self.most is not None and max(ends) > self.most)


@dataclass(frozen=True, kw_only=True)
class Record:
    """This class is one run of one benchmark."""

    benchmark: str
    question: str  # a key of QUESTIONS
    date: str  # of the day it ran, YYYY-MM-DD
    machine: Machine
    versions: dict[str, str]
    command: str
    commit: str
    source: str  # BENCHMARK, or where a number that no benchmark wrote comes from
    quick: bool
    measurements: tuple[Measurement, ...]


class Recorder:
    """This class prints the measurements of one benchmark and keeps its record.

    Args:
        benchmark: The name of the benchmark, which is the name of its folder under results/.
        question: Which question of the page it answers: a key of `QUESTIONS`.
        asked: What `arguments` parsed.
        peers: Packages whose versions belong into the record.
        gpu: The name of the GPU that the benchmark runs on; None on a CPU.
    """

    def __init__(
        self,
        benchmark: str,
        question: str,
        asked: argparse.Namespace,
        *,
        peers: Sequence[str] = (),
        gpu: str | None = None,
    ) -> None:
        self.folder: Path | None = asked.write
        self.record = Record(
            benchmark=benchmark,
            question=question,
            date=datetime.date.today().isoformat(),
            machine=this_machine(gpu),
            versions=versions(peers),
            command=command(),
            commit=commit(),
            source=BENCHMARK,
            quick=asked.quick,
            measurements=(),
        )
        assert question in QUESTIONS, question

    def add(
        self,
        key: str,
        what: str,
        value: float | Sequence[float],
        unit: str,
        *,
        low: float | None = None,
        high: float | None = None,
        spread: str | None = None,
        repetitions: int | None = None,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        """Add a quantity that has no peer; of several values, their median and range."""
        values = list(value) if isinstance(value, Sequence) else [value]
        if len(values) > 1:
            low, high, spread = min(values), max(values), spread or RANGE
        self._add(
            Measurement(
                key=key, what=what, unit=unit, value=statistics.median(values), low=low, high=high, spread=spread,
                repetitions=repetitions or len(values), least=least, most=most,
            )
        )  # fmt: skip

    def compare(
        self,
        key: str,
        what: str,
        ours: Sequence[float],
        theirs: Sequence[float],
        unit: str,
        *,
        peer: str,
        more_is_better: bool = False,
        least: float | None = None,
        most: float | None = None,
    ) -> float:
        """Add a quantity of both sides, measured in turns, and return the ratio: the median over the rounds."""
        better, worse = (ours, theirs) if more_is_better else (theirs, ours)
        ratios = [b / w for b, w in zip(better, worse, strict=True)]
        several = len(ratios) > 1
        found = Measurement(
            key=key, what=what, unit=unit, value=statistics.median(ours), peer=peer,
            peer_value=statistics.median(theirs), ratio=statistics.median(ratios),
            low=min(ratios) if several else None, high=max(ratios) if several else None,
            spread=RANGE if several else None, repetitions=len(ratios), least=least, most=most,
        )  # fmt: skip
        self._add(found)
        return statistics.median(ratios)

    def _add(self, found: Measurement) -> None:
        assert all(found.key != other.key for other in self.record.measurements), found.key
        self.record = replace(self.record, measurements=(*self.record.measurements, found))
        print(f"{found.what}: {shown(found)}", flush=True)
        if self.folder is not None:
            write(self.record, self.folder)


def shown(found: Measurement) -> str:
    """The measurement as one line of a terminal."""
    unit = f" {found.unit}" if found.unit else ""
    value = "" if found.value is None else f"{found.value:.4g}{unit}"
    if found.peer is not None:
        beside = "" if found.peer_value is None else f", {found.peer} {found.peer_value:.4g}{unit}"
        value = f"{found.ratio:.2f} times as good as {found.peer} ({value}{beside})"
    ends = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
    aims = [f"{word} {end:g}" for word, end in (("at least", found.least), ("at most", found.most)) if end is not None]
    aim = f" (aim: {', '.join(aims)}: {'MISSED' if found.missed else 'reached'})" if aims else ""
    return f"{value}{ends}{aim}"


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has: `--quick` and `--write`."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="sizes so small that numbers mean nothing: does it run?")
    parser.add_argument(
        "--write", type=Path, nargs="?", const=RESULTS, metavar="FOLDER", help="keep the record (default: results/)"
    )
    return parser


def write(record: Record, folder: Path) -> Path:
    """Write the record whole, in the place of an earlier one of the same day and machine."""
    if record.quick and folder.resolve() == RESULTS:
        raise SystemExit("--quick measures nothing worth keeping; name another folder: --write /tmp/quick")
    by_hand = "" if record.source == BENCHMARK else "-by-hand"
    path = folder / record.benchmark / f"{record.date}-{record.machine.slug}{by_hand}.json"
    write_atomically(path, (json.dumps(to_json(record), indent=1, ensure_ascii=False) + "\n").encode())
    return path


def read(path: Path) -> Record:
    """Read a record again."""
    return from_json(Record, json.loads(path.read_text(encoding="utf-8")))


def newest(benchmark: str, folder: Path = RESULTS) -> dict[str, tuple[Measurement, Record]]:
    """Return the newest measurement for each key of a benchmark, with the record that holds it.

    Of one day, a record that the benchmark wrote is newer than one that was written by hand.
    """
    found = map(read, (folder / benchmark).glob("*.json"))
    records = sorted(found, key=lambda record: (record.date, record.source == BENCHMARK))
    return {found.key: (found, record) for record in records for found in record.measurements}


def benchmarks(folder: Path = RESULTS) -> list[str]:
    """Return the names of all benchmarks that have records."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def this_machine(gpu: str | None) -> Machine:
    """Describe the machine that this process runs on."""
    try:
        said = subprocess.run(["lscpu"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:  # not every system has lscpu
        said = ""
    fields = dict(re.findall(r"^([^:\n]+):[ \t]*(.*)$", said, flags=re.MULTILINE))
    flags = set(fields.get("Flags", "").split())
    return Machine(
        processor=fields.get("Model name") or platform.processor() or platform.machine(),
        architecture=platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        features=tuple(short for flag, short in FEATURES.items() if flag in flags),
        gpu=gpu,
    )


def versions(peers: Sequence[str]) -> dict[str, str]:
    """Return the versions of lmlab, Python, torch and the peers that are installed."""
    found = {"lmlab": lmlab.version.__version__, "python": platform.python_version()}
    for name in ("torch", *peers):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def command() -> str:
    """Return the command of this process, as it is typed in the repository."""
    script, *rest = sys.argv
    path = Path(script).resolve()
    inside = path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path.name
    return shlex.join(["python", str(inside), *rest])


def commit() -> str:
    """Return the commit of the sources, marked where files differ from it; "unknown" where git cannot tell."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--", ".", ":!results", ":!docs")
        return git("rev-parse", "--short=12", "HEAD").strip() + ("+changes" if changed.strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get(COMMIT, "unknown")
