"""The wheels hold everything: installed into an empty folder, without the sources, they work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from some_text import some_lines

ROOT = Path(__file__).resolve().parents[1]


def test_the_lab_requires_the_checker_of_its_own_version() -> None:
    lab, checker = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (ROOT, ROOT / "derive")
    )
    assert lab["version"] == checker["version"]
    assert f"lmlab-derive=={checker['version']}" in lab["dependencies"]
    for version in (ROOT / "src" / "lmlab" / "version.py", ROOT / "derive" / "src" / "lmlab_derive" / "version.py"):
        assert f'__version__ = "{lab["version"]}"' in version.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both, built by `python -m build` in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheels")
    venv.create(folder / "tools", with_pip=True)
    tools = folder / "tools" / "bin" / "python"
    fetched = subprocess.run([tools, "-m", "pip", "install", "-q", "build"], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"no build tool can be fetched: {fetched.stderr.splitlines()[-1:]}")
    for source in (ROOT, ROOT / "derive"):
        subprocess.run(
            [tools, "-m", "build", "--wheel", "--outdir", folder / "dist", source], check=True, capture_output=True
        )
    return {wheel.name.partition("-")[0]: wheel for wheel in (folder / "dist").glob("*.whl")}


@pytest.mark.slow
def test_the_wheels_work_where_nothing_of_the_sources_is(tmp_path: Path, wheels: dict[str, Path]) -> None:
    """What they depend on is borrowed from this environment."""
    names = zipfile.ZipFile(wheels["lmlab"]).namelist()
    assert any(name.endswith("claims.toml") for name in names)
    assert not any("lmlab_derive" in name for name in names)
    sources = {path.name for path in (ROOT / "src").rglob("*.[ch]")}  # of kernels, which are made where they are used
    assert sources <= {Path(name).name for name in names}
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True, system_site_packages=False)
    python = empty / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", *wheels.values()], check=True, capture_output=True
    )
    borrowed = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    (tmp_path / "text.txt").write_text(some_lines(400))

    def lmlab(*arguments: str) -> str:
        done = subprocess.run(
            [empty / "bin" / "lmlab", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": borrowed, "LMLAB_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "compare" in lmlab("--help")
    lmlab("train", "ngram", "text.txt", "--out", "run")
    assert json.loads(lmlab("eval", "run", "--json"))["certified"]
    assert json.loads(lmlab("prove", "lab11.6b", "--json"))
    assert Path(lmlab("--version").split()[0]).name == "lmlab"


@pytest.mark.slow
def test_the_checker_works_without_torch_and_without_the_lab(tmp_path: Path, wheels: dict[str, Path]) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    bin = tmp_path / "empty" / "bin"
    fetched = subprocess.run(
        [bin / "python", "-m", "pip", "install", "-q", wheels["lmlab_derive"]],
        env=alone,
        capture_output=True,
        text=True,
    )
    if fetched.returncode:
        pytest.skip(f"what it depends on cannot be fetched: {fetched.stderr.splitlines()[-1:]}")
    for absent in ("torch", "lmlab"):
        assert (
            subprocess.run([bin / "python", "-c", f"import {absent}"], env=alone, capture_output=True).returncode == 1
        )
    (tmp_path / "key.derive").write_text("given x: n\nquestion one\nclaim d(x @ x)/dx == 2*x\n")
    (tmp_path / "ada.derive").write_text("claim d(x @ x)/dx == 2*x\n")
    (tmp_path / "sheet.derive").write_text(
        "given x: n\nclaim d(logsumexp(x))/dx == softmax(x)\nclaim d(sum(x**3))/dx == 2 * x**2\n"
    )

    def derive(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([bin / "derive", *arguments], cwd=tmp_path, env=alone, capture_output=True, text=True)

    checked = derive("check", "sheet.derive", "--json")
    assert checked.returncode == 1, checked.stderr
    assert [claim["verdict"] for claim in json.loads(checked.stdout)["claims"]] == ["proved", "refuted"]
    graded = derive("grade", "key.derive", "ada.derive", "--out", "graded")
    assert graded.returncode == 0, graded.stderr
    assert "1/1" in graded.stdout
    assert (tmp_path / "graded" / "grades.csv").is_file()
