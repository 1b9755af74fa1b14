"""A plain `nn.Module` is a language model of the lab: trained, certified, ranked, resumed, generated from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lmlab as lab
from command_line import Lmlab, done
from interrupts import InterruptAt
from lmlab.measure import Result
from lmlab.models import registry
from lmlab.models.plain_module import wrapped
from lmlab.promises import subjects
from lmlab.promises.suite import _kept, promises
from mistakes import mistake
from some_text import some_lines

MODULE = '''
import torch
from torch import nn

class Net(nn.Module):
    """A recurrent net."""
    def __init__(self, vocab_size, block_size=12, width: int = 16, note=None):
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(width, vocab_size)

    def forward(self, ids):
        return self.out(self.drop(self.cell(self.table(ids))[0]))

class Leaky(Net):
    def forward(self, ids):
        seen = self.table(ids)
        return self.out(self.drop(self.cell(seen)[0] + torch.roll(seen, -1, 1)))

def deep(vocab_size, width=8):
    return Net(vocab_size, width=width)

def with_loss(vocab_size):
    class Tuple(Net):
        def forward(self, ids, targets=None):
            return super().forward(ids), None
    return Tuple(vocab_size, width=8)

whole = Net(257, width=8)
'''


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module above, in a file that Python finds."""
    import importlib

    name = f"plain_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name)


def built(cls: type[nn.Module], **settings: int) -> Any:
    model_class = wrapped(cls, cls.__module__, cls.__qualname__)
    torch.manual_seed(0)
    return model_class(model_class.Config(**settings), 5).eval()


class Positional(nn.Module):
    """Its logits depend on the place in the window alone, so they show which window a token was predicted in."""

    def __init__(self, vocab_size: int, context: int = 4) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.randn(context, vocab_size))

    def forward(self, ids: Tensor) -> Tensor:
        return self.at[: ids.shape[1]].expand(len(ids), -1, -1)


def test_a_window_is_filled_and_the_next_begins_with_its_second_half() -> None:
    model = built(Positional)
    logp_CV = model.module.at[:, :5].log_softmax(-1)
    tokens_T = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3])
    places = [0, 1, 2, 3, 2, 3, 2, 3, 2]  # in its window: the first is filled, then two are new in each
    expected = -logp_CV[places, tokens_T]
    torch.testing.assert_close(model.score(tokens_T[None])[0], expected)
    assert str(model.policy) == "every token sees the 2 to 3 tokens of its document before it, or as many as there are"


@pytest.mark.parametrize(("kind", "broken"), [("Net", []), ("Leaky", ["the future does not leak"])])
def test_the_contract_holds_for_an_honest_module_and_names_what_looking_ahead_breaks(
    kind: str, broken: list[str], plain: ModuleType
) -> None:
    tokens = subjects.tokenizer("words")
    model = subjects.build(registry.model_class(f"{plain.__name__}:{kind}"), {"width": 8, "block_size": 5}, tokens)
    found = [_kept(promise, "words") for promise in promises(model, tokens, tiny=False)]
    assert set(broken) <= {finding.promise for finding in found if not finding.kept}
    assert broken or all(finding.kept for finding in found), [f for f in found if not f.kept]


@pytest.mark.slow
def test_the_whole_contract_holds_by_its_command(plain: ModuleType, lmlab: Lmlab) -> None:
    settings = ("--set", "width=8", "--set", "block_size=6")
    assert "promises hold" in done(lmlab("contract", f"{plain.__name__}:Net", *settings))
    code, out, _ = lmlab("contract", f"{plain.__name__}:Leaky", *settings)
    assert code == 1
    assert "FAILS  the future does not leak (char)" in out


def test_it_is_trained_resumed_generated_from_and_certified(
    plain: ModuleType, small_text: Path, tmp_path: Path
) -> None:
    asked: Any = {"budget": "40steps", "learning": {"learning_rate": 0.02}, "device": "cpu"}
    whole = lab.train(plain.Net, small_text, out=tmp_path / "whole", **asked)
    watch = InterruptAt(20)
    stopped = lab.train(plain.Net, small_text, out=tmp_path / "run", watch=watch, **asked)
    assert stopped.status == "unfinished"
    resumed = lab.resume(tmp_path / "run")
    for name, tensor in whole.model.tensors().items():
        assert torch.equal(tensor, resumed.model.tensors()[name]), name
    assert resumed.record.model.name == f"{plain.__name__}:Net"
    assert resumed.record.model.config == {"block_size": 12, "width": 16}
    result = lab.evaluate(tmp_path / "run")
    assert isinstance(result, Result)
    assert result.certificate.passed
    assert result.bits_per_byte < 5
    (written,) = lab.generate(tmp_path / "run", prompt="the", tokens=9)
    assert len(written.ids) == 9


def test_one_that_looks_ahead_gets_no_certificate(plain: ModuleType, small_text: Path, tmp_path: Path) -> None:
    run = lab.train(plain.Leaky, small_text, out=tmp_path / "run", budget="40steps", device="cpu")
    result = lab.evaluate(run)
    assert isinstance(result, Result)
    assert not result.certificate.passed


def test_it_is_ranked_beside_ours(plain: ModuleType, small_text: Path, tmp_path: Path) -> None:
    small_text.write_text(some_lines(900))
    found = lab.compare(small_text, out=tmp_path / "out", models=["uniform", plain.Net], each="60steps", device="cpu")
    best, other = found.entries
    assert [best.model, other.model] == [f"{plain.__name__}:Net", "uniform"]
    assert (best.status, best.rank) == ("ranked", 1)


@pytest.mark.parametrize("kind", ["deep", "with_loss", "whole"])
def test_a_function_and_a_module_are_taken_too(kind: str, plain: ModuleType, small_text: Path, tmp_path: Path) -> None:
    run = lab.train(getattr(plain, kind), small_text, out=tmp_path / "run", budget="3steps", tokenizer="byte")
    assert run.record.model.name == f"{plain.__name__}:{kind}"
    assert torch.equal(lab.load(tmp_path / "run").load("cpu").score(torch.ones(1, 4).long()), _score(run))


def _score(run: Any) -> Tensor:
    return run.load("cpu").score(torch.ones(1, 4).long())


class NoVocabulary(nn.Module):
    def __init__(self, config: object, other: object) -> None:
        super().__init__()


class LastAlone(nn.Module):
    def __init__(self, vocab_size: int, context: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids[:, -1:])


def test_what_a_module_lacks_is_said_in_one_line() -> None:
    with mistake("plain-module-arguments", "no argument vocab_size"):
        wrapped(NoVocabulary, __name__, "NoVocabulary")
    with mistake("plain-module-logits", "those of every token"):
        built(LastAlone).score(torch.zeros(1, 3).long())
    with mistake("model-without-file"):
        registry.name_of(nn.Linear(2, 2))


def test_a_class_of_the_program_itself_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    mine = type("Mine", (Positional,), {"__module__": "__main__"})
    vars(program).update(__file__="/somewhere/mine.py", Mine=mine)
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert registry.name_of(mine) == "mine:Mine"
    assert registry.kind_of("mine:Mine").load().name == "Mine"
    del program.__file__
    with mistake("model-without-file"):
        registry.name_of(mine)


def test_a_program_that_trains_when_it_is_imported_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_text: Path
) -> None:
    (tmp_path / "trains_at_once.py").write_text(f"import lmlab\nlmlab.train('bag', {str(small_text)!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with mistake("model-module-trains", "if __name__ == '__main__':"):
        registry.kind_of("trains_at_once:Net")
