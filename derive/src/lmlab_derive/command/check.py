"""Check files and print the answers: `derive check` and `lmlab check`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from lmlab_derive.command.json_output import print_json
from lmlab_derive.shared.mistakes import Mistake

LOOK_S = 0.3  # between two looks at the files that are watched


def check_files(files: Sequence[str], *, json: bool = False, html: str | None = None, seed: int = 0) -> int:
    """Check sheets (- is standard input) and print the answers; 0 if every claim holds, else 1."""
    from lmlab_derive.command.show_report import print_report
    from lmlab_derive.sheets.files import read_sheet, unique_names
    from lmlab_derive.verbs import check

    for file in files:
        if file != "-":
            read_sheet(file)  # a file that is not there is refused before any other is checked
    pages: list[Path | None] = [None] * len(files)
    if html is not None:
        several = len(files) > 1
        pages = [Path(html) / f"{name}.html" if several else Path(html) for name in unique_names(files)]
    reports = [check(Path(file), html=page, seed=seed) for file, page in zip(files, pages, strict=True)]
    named = list(zip(files, reports, strict=True))
    ok = all(report.ok for report in reports)
    if json and len(files) == 1:
        print_json(reports[0].to_dict())
    elif json:  # each claim also says which file it is from
        claims = [{"file": file} | claim.to_dict() for file, report in named for claim in report.claims]
        print_json({"claims": claims, "ok": ok})
    else:
        for file, report in named:
            print_report(file if len(files) > 1 else "", report)
    return 0 if ok else 1


def watch_files(files: Sequence[str], *, html: str | None = None, seed: int = 0) -> int:
    """Check now and whenever a file is saved, until interrupted; 0 if all held the last time."""
    if not files or "-" in files:
        raise Mistake("{watch} is for files; name them", code="watch-of-no-file", watch=None)
    seen: list[float] = []
    code = 0
    try:
        while True:
            saved = [Path(file).stat().st_mtime if Path(file).is_file() else 0.0 for file in files]
            if saved != seen:
                code, seen = check_files(files, html=html, seed=seed), saved
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return code
