"""Writes the golden values anew and says which moved; the commit says why.

python tests/golden/make_golden.py                     all groups
python tests/golden/make_golden.py learned costs       these
python tests/golden/make_golden.py --check learned     only says which moved by more than a test allows
python tests/golden/make_golden.py --show learned      every digit, to hold two versions against each other on one machine
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden_groups import GROUPS
from golden_places import Place, brought, plain_machine
from golden_values import plain, write


def main(words: list[str]) -> int:
    names = [word for word in words if not word.startswith("--")]
    groups = [group for group in GROUPS if not names or group.name in names]
    moved = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        with plain_machine(root / "cache"):
            kept = brought(root / "golden")
            for group in groups:
                golden, values = group.golden(), {}
                for number, case in enumerate(group.cases):
                    new = root / group.name / str(number)
                    new.mkdir(parents=True)
                    values[case] = plain(group.measure(case, Place(kept=kept, new=new)))
                    if "--show" in words:
                        print(group.name, case, values[case])
                    elif lines := [] if case not in golden else group.moved(golden[case], values[case]):
                        moved += 1
                        print(f"{group.name}: {case} moved")
                        print(*(f"    {line}" for line in lines), sep="\n")
                new_cases = [case for case in values if case not in golden]
                gone = [case for case in golden if case not in values]
                print(f"{group.name}: {len(values)} cases, new: {new_cases}, gone: {gone}")
                if not {"--check", "--show"} & set(words):
                    # What a test allows is rounding: such values stay as they are, so that a change shows what it changed.
                    same = {c: golden[c] for c in values if c in golden and not group.moved(golden[c], values[c])}
                    write(group, values if group.may_grow else values | same)
    return 1 if moved and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
