"""Which answers count, how much, and who has to look."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lmlab_derive import check
from lmlab_derive.grading.book import GradeBook, grade
from lmlab_derive.grading.key import read_key
from lmlab_derive.grading.paper import Paper, mark_paper
from lmlab_derive.shared.mathml import to_mathml
from refusals import mistake

SETTING = """
given x: 1, D
given W: D, K
given y: 1, K onehot
let p = softmax(x @ W)
let J = -sum(y * log(p))
"""
KEY = (
    SETTING
    + """
claim dJ/dW == x.T @ (p - y)
claim dJ/dx == (p - y) @ W.T
claim sum(p) == 1
"""
)
GRADIENT = SETTING + "claim dJ/dW == x.T @ (p - y)"
BOUND = "given x: n\nclaim sum(x)/n <= max(x)"
CHAIN = (
    SETTING.replace("softmax(x @ W)", "softmax(z)").replace("let p", "let z = x @ W\nlet p")
    + """
question 1 (6 points)
derive dJ/dx
  = dJ/dz @ W.T
  = (p - y) @ W.T
  = p @ W.T - y @ W.T
"""
)


def paper(key: str, answer: str) -> Paper:
    return grade(key, {"student": answer}).papers[0]


def marks(key: str, answer: str) -> list[str]:
    return [a.mark for a in paper(key, answer).answers]


def reason(key: str, answer: str) -> str:
    return paper(key, answer).answers[0].parts[0].judged.reason


def test_equivalent_forms_are_right() -> None:
    answer = "claim dJ/dW == outer(x, p - y)\nclaim dJ/dx == (W @ (p - y).T).T\nclaim sum(p) == 1"
    assert marks(KEY, answer) == ["right"] * 3


def test_wrong_and_missing_answers_are_told_apart() -> None:
    assert marks(KEY, "claim dJ/dW == x.T @ (y - p)") == ["wrong", "missing", "missing"]


def test_helpers_and_derivations_are_accepted() -> None:
    answer = "let d = p - y\nderive dJ/dW\n  = x.T @ d\nderive dJ/dx\n  = d @ W.T\n  = p @ W.T - y @ W.T"
    assert marks(KEY, answer) == ["right", "right", "missing"]


def test_shapes_that_do_not_fit_are_wrong() -> None:
    assert marks(GRADIENT, "claim dJ/dW == (p - y) @ x.T") == ["wrong"]


# -- the key -------------------------------------------------------------------------------------------------------------


def test_questions_have_names_points_and_parts() -> None:
    key = SETTING + "question 1 a) The gradients (4 points)\n" + KEY[len(SETTING) :]
    (question,) = grade(key, {}).key.questions
    assert (question.name, question.points, len(question.parts)) == ("1 a) The gradients", 4, 3)
    answer = paper(key, "claim dJ/dW == x.T @ (p - y)\nclaim dJ/dx == (p - y) @ W").answers[0]
    assert (answer.mark, answer.points) == ("partly right", Fraction(4, 3))


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [
        ("given x\n\nclaim x == 2*x", "key-does-not-hold", "line 3: refuted"),
        ("given x\nclaim x ==", "key-not-understood", "line 2"),
        ("given x", "key-asks-nothing", "claim or derive"),
        ("given x\nquestion 1\nquestion 2\nclaim x == x", "question-asks-nothing", "line 2: question 1"),
        ("given x\nquestion 1\nclaim x == x\nquestion 1.\nclaim x == x", "question-twice", "'1'"),
        ("given x\nquestion 1 (0 points)\nclaim x == x", "question-without-points", "0 points"),
        ("given x: n\nclaim min(x) <= max(x) == max(x) >= sum(x)/n", "key-chain-up-and-down", "two claims"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(key: str, code: str, words: str) -> None:
    with mistake(code, words):
        grade(key, {"s": ""})


def test_a_key_and_an_answer_may_be_checked_as_sheets() -> None:
    from lmlab_derive import check

    assert check("given x\nquestion 1 (2 points)\nclaim x + x == 2*x").ok


def test_an_answer_may_use_what_the_key_defines_further_down() -> None:
    key = "given x: n\nclaim sum(x)/n + 1 == (sum(x) + n)/n\nlet m = sum(x)/n\nclaim m**2 == m * m"
    assert marks(key, "claim sum(x)/n + 1 == 1 + m + 0*n")[0] == "wrong"  # holds what is asked
    assert marks(key, "claim sum(x)/n + 1 == (sum(x) + n)/n + m - m")[0] == "right"


# -- one answer a question -----------------------------------------------------------------------------------------------


def test_of_contradictory_answers_the_last_counts_and_the_others_are_shown() -> None:
    right, wrong = "claim dJ/dW == x.T @ (p - y)", "claim dJ/dW == {} * x.T @ (p - y)"
    answers = [wrong.format(2), right, wrong.format(3), wrong.format(4), wrong.format(5)]
    answer = paper(GRADIENT, "\n".join(answers)).answers[0]
    assert answer.mark == "wrong"
    assert [line.line for line in answer.parts[0].others] == [1, 2, 3, 4]
    assert marks(GRADIENT, "\n".join([*answers, right])) == ["right"]


def test_a_chain_with_a_wrong_piece_is_wrong_as_a_whole() -> None:
    assert marks(GRADIENT, "claim 2 * x.T @ (p - y) == dJ/dW == x.T @ (p - y)") == ["wrong"]


def test_answers_under_a_name_of_the_key_answer_that_question() -> None:
    key = "given x\nquestion a\nclaim x**2 >= 0\nquestion b\nclaim x**2 == x * x"
    assert marks(key, "question b\nclaim x**2 == 2 * x\nquestion A:\nclaim x**2 >= 0") == ["right", "wrong"]
    assert paper(key, "question c\nclaim x**2 >= 0").notes == ("line 1: the key has no question c",)


def test_claims_that_nobody_asked_for_are_shown() -> None:
    found = paper(GRADIENT, "claim sum(p) == 1\nclaim dJ/dW == x.T @ (p - y)")
    assert [(line.line, line.text) for line in found.unasked] == [(1, "claim sum(p) == 1")]


# -- bounds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("claim sum(x)/n <= max(x)", "right"),
        ("claim max(x) >= sum(x)/n", "right"),
        pytest.param("claim mean(x) <= max(x)", "right", marks=pytest.mark.slow),
        ("claim min(x) <= sum(x)/n <= max(x)", "right"),
        pytest.param("claim sum(x)/n <= max(x) + 1", "wrong", marks=pytest.mark.slow),
        pytest.param("claim sum(x)/n <= sum(abs(x))", "wrong", marks=pytest.mark.slow),
        ("claim sum(x)/n < max(x)", "wrong"),
        pytest.param("claim sum(x)/n >= min(x)", "wrong", marks=pytest.mark.slow),
        ("claim sum(x)/n <= sum(x)/n", "wrong"),
        ("claim sum(x)/n <= (max(x) + sum(x)/n)/2", "wrong"),
    ],
)
def test_a_bound_is_as_sharp_as_the_keys_either_way_round(answer: str, mark: str) -> None:
    assert marks(BOUND, answer) == [mark]


def test_a_trivial_bound_is_told_that_a_sharper_one_is_asked_for() -> None:
    assert "a sharper bound than -5 is asked for" in reason("given x\nclaim x**2 >= 0", "claim x**2 >= -5")
    assert marks("given x\nclaim x <= x**2 + 1/4", "claim x <= x**2 + 1/2") == ["wrong"]
    assert marks("given x\nclaim x <= x**2 + 1/4", "claim x <= x") == ["wrong"]


@pytest.mark.slow
def test_the_sides_of_a_chain_are_two_parts() -> None:
    key = SETTING + "question range (2 points)\nclaim 0 <= p <= 1"
    for answer, points in {"claim 0 <= p <= 1": 2, "claim 1 >= p\nclaim p >= 0": 2, "claim p <= 1": 1}.items():
        assert paper(key, answer).points == points
    assert paper(key, "claim -5 <= p <= 1").points == 1


def test_a_bound_that_is_not_strict_where_the_keys_is_has_to_be_looked_at() -> None:
    assert marks("given x\nclaim sigmoid(x) < 1", "claim sigmoid(x) <= 1") == ["please look"]


# -- steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "points"),
    [
        (["dJ/dz @ W.T", "(p - y) @ W.T", "p @ W.T - y @ W.T"], 6),
        (["(p - y) @ W.T"], 6),
        (["dJ/dz @ W.T", "(p - y) @ W.T", "p @ W.T + y @ W.T"], 4),
        (["dJ/dz @ W.T", "(y - p) @ W.T"], 2),
        (["dJ/dz @ W.T"], 2),
        (["1 * dJ/dx", "dJ/dx + W[:, 0] - W[:, 0]", "(y - p) @ W.T"], 0),
        (["2 * (p - y) @ W.T"], 0),
    ],
)
def test_right_steps_of_a_derivation_earn_their_share_and_padding_earns_nothing(steps: list[str], points: int) -> None:
    assert paper(CHAIN, "derive dJ/dx" + "".join(f"\n  = {step}" for step in steps)).points == points


# -- answers that are none -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "claim dJ/dW == dJ/dW",
        "let g = dJ/dW\nclaim dJ/dW == g",
        "claim dJ/dW == 1 * dJ/dW",
        "claim dJ/dW == d(2 * J)/dW / 2",
        "claim dJ/dW == x.T @ d(J)/d(z) where z = x @ W",
        "claim dJ/dW == grad(J, W)",
    ],
)
def test_the_question_said_again_is_no_answer(answer: str) -> None:
    assert marks(GRADIENT, answer)[0] in ("wrong", "please look")
    assert paper(GRADIENT, answer).points == 0


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("sum(softmax(x @ W))", "wrong"),
        ("sum(p + y - y)", "wrong"),
        ("sum(p.T)", "please look"),
        ("sum(y)", "please look"),
        ("1", "right"),
    ],
)
def test_an_answer_by_definition_is_no_answer(answer: str, mark: str) -> None:
    assert marks(SETTING + "claim sum(p) == 1", f"claim sum(p) == {answer}") == [mark]


def test_the_setting_of_the_key_stays_whatever_the_student_defines() -> None:
    answer = "given x: 1, D\nlet J = sum(x)\nclaim dJ/dx == ones(1, D)\nlet p = y\nclaim dJ/dW == x.T @ (p - y)"
    found = paper(KEY, answer)
    assert [a.mark for a in found.answers] == ["right", "wrong", "missing"]
    assert any("defines J anew" in note for note in found.notes)


def test_an_answer_under_a_condition_of_its_own_does_not_count() -> None:
    key = "given x: n\nlet J = sum(abs(x))\nclaim dJ/dx == sign(x)"
    assert marks(key, "claim dJ/dx == ones(n) where x > 0") == ["wrong"]
    assert "the question has no such condition" in reason(key, "claim dJ/dx == ones(n) where x > 0")
    assert marks(key, "claim dJ/dx == zeros(n) where x > 0, x < 0") == ["wrong"]
    assert marks(key, "claim dJ/dx == sign(x) where n > 0") == ["right"]  # no condition at all


def test_a_worked_out_value_that_names_no_question_answers_none() -> None:
    assert marks(GRADIENT, "claim x.T @ (p - y) == outer(x, p - y)") == ["please look"]
    assert marks(SETTING + "claim sum(p) == 1", "claim sum(y) == 1") == ["please look"]


# -- what a person has to look at ----------------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_read_is_not_called_missing() -> None:
    answer = paper(KEY, "claim dJ/dW == x.T @ (p - y\nclaim sum(p) == 1")
    assert [a.mark for a in answer.answers] == ["please look", "missing", "right"]
    (line,) = answer.answers[0].parts[0].unreadable
    assert (line.line, line.text) == (1, "claim dJ/dW == x.T @ (p - y")
    assert "missing to close the bracket" in line.reason


def test_an_unreadable_line_without_a_place_may_be_any_answer_that_is_missing() -> None:
    found = paper(KEY, "clam 3\nclaim sum(p) == 1")
    assert [line.line for line in found.unreadable] == [1]
    assert [a.mark for a in found.answers] == ["please look", "please look", "right"]
    assert found.points == 1


def test_the_last_word_counts_even_if_it_cannot_be_read() -> None:
    right = "claim dJ/dW == x.T @ (p - y)"
    assert marks(GRADIENT, f"{right}\n{right})") == ["please look"]
    assert marks(GRADIENT, f"{right})\n{right}") == ["right"]


def test_an_answer_without_the_keys_where_is_understood() -> None:
    key = "given s: positive\nclaim E[(a @ b)**2] == D where a: D normal(0, 1), b: D normal(0, 1)\nclaim s**2 == s * s"
    found = paper(key, "claim E[(a @ b)**2] == D\nclaim s**2 == s * s * 1**2")
    assert [a.mark for a in found.answers] == ["right", "right"]
    assert not found.unreadable


def test_the_target_in_other_words_is_found() -> None:
    key = "given x: n\ngiven t\nclaim logsumexp(x + t) == logsumexp(x) + t"
    assert marks(key, "claim log(sum(exp(x + t))) == log(sum(exp(x))) + t") == ["right"]
    assert marks(key, "claim log(sum(exp(x + t))) == log(sum(exp(x))) * t") == ["wrong"]
    assert marks(key, "claim 2 * logsumexp(x + t) == 2 * logsumexp(x) + 2 * t") == ["please look"]


def test_what_the_checker_cannot_decide_is_looked_at_by_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmlab_derive.grading import bench
    from lmlab_derive.sheets.report import ClaimReport

    undecided = ClaimReport(line=0, claim="", verdict="undecided", reason="too close to tell")
    key = read_key(GRADIENT)
    monkeypatch.setattr(bench, "checked", lambda *_, **__: undecided)
    found = mark_paper("s", "claim dJ/dW == x.T @ (p - y)", key, bench.Bench(0))
    assert [(a.mark, a.points) for a in found.answers] == [("please look", 0)]


# -- huge ----------------------------------------------------------------------------------------------------------------


def test_lets_that_double_and_sheets_that_are_too_long_are_answered() -> None:
    doubling = "let a0 = x\n" + "".join(f"let a{i + 1} = a{i} + a{i}\n" for i in range(100))
    assert marks(GRADIENT, f"{doubling}claim dJ/dW == a100.T @ (p - y) / 2**64") == ["wrong"]
    squaring = "let a0 = 3\n" + "".join(f"let a{i + 1} = a{i} * a{i}\n" for i in range(100))
    assert marks(GRADIENT, f"{squaring}claim dJ/dW == x.T @ (p - y) / a100") == ["wrong"]
    assert marks(GRADIENT, "x" * 300_000) == ["please look"]


# -- a class -------------------------------------------------------------------------------------------------------------


def class_of_three() -> GradeBook:
    sign = "claim dJ/dW == x.T @ (y - p)"
    return grade(KEY, {"ada": sign, "bo": f"{sign}\nclaim sum(p) == 1", "cy": "claim dJ/dW == x.T @ (p - y\n"})


def test_the_summary_counts_slips() -> None:
    (slip,) = class_of_three().slips()
    assert slip.students == ("ada", "bo")
    assert "sign" in slip.what


def test_the_table_for_a_gradebook_leaves_open_what_has_to_be_looked_at() -> None:
    assert class_of_three().to_csv().splitlines() == [
        "student,Q1,Q2,Q3,points,out of,please look,several answers",
        "ada,0,0,0,0,3,,",
        "bo,0,0,1,1,3,,",
        "cy,,0,0,0,3,Q1,",
    ]


def test_the_same_answer_gets_the_same_report_whoever_wrote_it() -> None:
    answer = "derive dJ/dW\n  = x.T @ (p - y)\n  = x.T @ p + x.T @ y"
    book = grade(GRADIENT, {"ada": answer, "bo": f"# late\n\nlet unused = 3\n{answer}"})
    first, second = (paper.answers[0].parts[0].judged.report for paper in book.papers)
    assert first is not None
    assert second is not None
    assert first.counterexample == second.counterexample
    assert (first.wrong_line, second.wrong_line) == (3, 6)


def test_axes_are_printed() -> None:
    from lmlab_derive.grading.pages import student_page

    key = (
        "given A: n, m\nclaim sum(softmax(A, axis=0), axis=0) == ones(m)\nclaim norm(A, axis=1)**2 == sum(A**2, axis=1)"
    )
    book = grade(key, {"s": "claim norm(A, axis=1)**2 == sum(A*A, axis=1)"})
    page = student_page(book.papers[0], book, "where")
    assert page.count("axis") >= 3


# -- entries and whole arrays, names by their part ------------------------------------------------------------------------

VECTOR = "given u, x: n\ngiven W: n, n\nlet J = sum((W @ x)**2)\n"


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("dJ/dW == 2 * outer(W @ x, x)", "dJ/dW[i,j] = 2 * (W @ x)[i] * x[j]"),
        ("dJ/dW == 2 * outer(W @ x, x)", "dJ/dW[j,i] = 2 * (W @ x)[j] * x[i]"),
        ("dJ/dW == 2 * outer(W @ x, x)", "dJ/dW_ij = 2 * (W @ x)_i * x_j"),
        ("dJ/dW == 2 * outer(W @ x, x)", "\\frac{\\partial J}{\\partial W_{ij}} = 2 (W x)_i x_j"),
        ("dJ/dx == 2 * W.T @ W @ x", "(dJ/dx)[j] = 2 * (W.T @ W @ x)[j]"),
        ("dJ/dx == 2 * W.T @ W @ x", "dJ/dx_j = 2 * sum(i, W[i,j] * (W @ x)[i])"),
        ("d(u @ u)/du == 2 * u", "d(u @ u)/du_i = 2 * u_i"),
        ("dJ/dW[i,j] == 2 * (W @ x)[i] * x[j]", "dJ/dW = 2 * outer(W @ x, x)"),
        ("dJ/dW_ij == 2 * (W @ x)_i * x_j", "dJ/dW[k,l] = 2 * x[l] * (W @ x)[k]"),
    ],
)
def test_an_answer_about_every_entry_is_one_about_the_array(key: str, answer: str) -> None:
    assert marks(f"{VECTOR}claim {key}", f"claim {answer}") == ["right"]
    wrong = answer.replace("2 *", "3 *").replace("2 (", "3 (")
    assert marks(f"{VECTOR}claim {key}", f"claim {wrong}") == ["wrong"]


def test_an_answer_about_one_entry_is_looked_at() -> None:
    assert marks(f"{VECTOR}claim dJ/dx == 2 * W.T @ W @ x", "claim dJ/dx[0] = 2 * (W.T @ W @ x)[0]") == ["please look"]


def test_names_of_ones_own_stand_for_the_keys_by_their_part() -> None:
    key = "claim KL(f, g) >= 0 where f: n simplex, g: n simplex"
    assert marks(key, "claim KL(P, Q) >= 0 where P: m simplex, Q: m simplex") == ["right"]
    assert marks(key, "given P, Q: m simplex\nclaim KL(P, Q) >= 0") == ["right"]
    assert marks(key, "claim KL(P, Q) >= 0 where P: m positive, Q: m simplex") != ["right"]
    assert grade(key, {}).key.questions[0].parts[0].label == "KL(f, g)"


# -- ways to earn a point without an answer -------------------------------------------------------------------------------


def test_the_question_with_its_index_renamed_is_no_answer() -> None:
    key = "given T: positive integer\nclaim sum(i=1..T, i) = T*(T + 1)/2"
    assert marks(key, "claim sum(i=1..T, i) = sum(j=1..T, j)") == ["wrong"]
    assert marks(key, "claim sum(i=1..T, i) = T + sum(j=1..T-1, j)") == ["please look"]
    assert marks(key, "claim sum(j=1..T, j) = T**2/2 + T/2") == ["right"]


def test_a_slope_that_the_reader_works_out_is_no_answer() -> None:
    key = "given a, b\nlet J = softplus(b - a)\nclaim dJ/da = -sigmoid(b - a)"
    assert marks(key, "let L(t) = softplus(-t)\nclaim dJ/da = L'(a - b)") == ["wrong"]
    assert marks(key, "let L(t) = softplus(-t)\nlet g = L'(a - b)\nclaim dJ/da = g") == ["wrong"]
    assert marks(key, "claim dJ/da = sigmoid(b - a)*(0 - 1)") == ["right"]


def test_what_the_key_does_without_is_looked_at() -> None:
    assert marks(SETTING + "claim sum(p) == 1", "claim sum(p) == K * mean(p)") == ["please look"]
    assert marks(SETTING + "claim sum(p) == 1", "claim sum(p) == (p @ ones(K))[0]") == ["please look"]


def test_a_bound_from_the_other_side_is_shown_and_noted_in_the_table() -> None:
    key = "given p: K simplex\nclaim H(p) <= log(K)"
    book = grade(
        key, {"s": "claim H(p) <= log(K)\nclaim H(p) >= log(K)", "t": "claim H(p) <= log(K)\nclaim H(p) <= log(K)"}
    )
    assert [line.line for line in book.papers[0].answers[0].parts[0].others] == [2]
    assert [row.rpartition(",")[2] for row in book.to_csv().splitlines()] == ["several answers", "Q1", ""]


def test_the_finished_answer_counts_wherever_it_stands() -> None:
    setting = SETTING.replace("softmax(x @ W)", "softmax(z)").replace("let p", "let z = x @ W\nlet p")
    key = f"{setting}claim dJ/dx == (p - y) @ W.T"
    assert marks(key, "claim (p - y) @ W.T = dJ/dx = dJ/dz @ W.T") == ["right"]
    assert marks(key, "claim dJ/dx = (p - y) @ W.T\nclaim dJ/dx = dJ/dz @ W.T") == ["right"]
    assert marks(key, "claim dJ/dz = p - y\nclaim dJ/dx = dJ/dz @ W.T") == ["please look"]


# -- sheets without keywords ----------------------------------------------------------------------------------------------


def test_formulas_on_lines_of_their_own_are_answers_and_those_among_words_are_looked_at() -> None:
    assert marks(GRADIENT, "1a) dJ/dW = x.T @ (p - y).") == ["right"]
    assert marks(GRADIENT, "Answer: dJ/dW = x.T @ (y - p)") == ["wrong"]
    found = paper(GRADIENT, "With the chain rule we find that dJ/dW = x.T @ (p - y), as shown in class.").answers[0]
    assert (found.mark, found.parts[0].judged.reason) == ("please look", "it stands among words; by itself it holds")


def test_a_paragraph_without_a_formula_is_shown_once() -> None:
    found = paper(GRADIENT, "First we look at the loss\nand then we think about it\nfor a long while")
    assert [line.line for line in found.unreadable] == [1]
    assert found.answers[0].mark == "please look"


KEY_OF_THREE = (
    SETTING
    + "question 1\nclaim dJ/dW = x.T @ (p - y)\nquestion 2\nclaim dJ/dx = (p - y) @ W.T\nquestion 3\nclaim H(p) <= log(K)\n"
)
RIGHT = ("dJ/dW = x.T @ (p - y)", "dJ/dx = (p - y) @ W.T", "H(p) <= log(K)")


@pytest.mark.parametrize(
    "label", ["{}. ", "({}) ", "[{}] ", "{}.) ", "Exercise {}. ", "Question {}. ", "question {}: "]
)
def test_a_number_before_a_formula_is_no_factor(label: str) -> None:
    answer = "\n".join(label.format(k) + formula for k, formula in enumerate(RIGHT, start=1))
    assert marks(KEY_OF_THREE, answer) == ["right"] * 3


@pytest.mark.parametrize("label", ["- ", "* ", "{} - ", "{}.1 "])
def test_what_may_be_a_label_or_a_part_of_the_formula_is_looked_at(label: str) -> None:
    answer = "\n".join(label.format(k) + formula for k, formula in enumerate(RIGHT, start=1))
    assert marks(KEY_OF_THREE, answer) == ["please look"] * 3


def test_what_stands_under_a_question_is_looked_at_where_nothing_answers_it() -> None:
    assert marks(KEY_OF_THREE, "question 3\nlog(K) - H(p) >= 0") == ["missing", "missing", "please look"]


def test_a_statement_ends_at_the_name_of_a_question() -> None:
    answer = f"question 3\n{RIGHT[2]}\nquestion 2\n-dJ/dx = (y - p) @ W.T"
    assert marks(KEY_OF_THREE, answer) == ["missing", "please look", "right"]


def test_a_bound_by_what_is_asked_about_is_looked_at() -> None:
    key = "given z: k\nclaim logsumexp(z) <= max(z) + log(k)"
    assert marks(key, "claim logsumexp(z) <= log(sum(exp(z)))") == ["please look"]
    assert marks(key, "claim logsumexp(z) <= log(k) + max(z)") == ["right"]


def test_a_derivative_by_a_name_of_the_sheet_is_looked_at() -> None:
    answer = "let Z = x @ W\nderive dJ/dW\n  = x.T @ dJ/dZ\n  = x.T @ (p - y)"
    assert marks(GRADIENT, answer) == ["please look"]


def test_a_binomial_can_be_typeset() -> None:
    (claim,) = check("claim sum(i=1..n, i) = binom(n+1, 2)").claims
    assert "<math" in to_mathml(claim.latex)


def test_the_rows_of_an_align_are_answers_of_their_own() -> None:
    rows = [
        r"\begin{align}",
        r"\frac{\partial J}{\partial W} &= x^\top (p - y) \\",
        r"\frac{\partial J}{\partial x} &= (p - y) W^\top \\",
        r"sum(p) &= 1",
        r"\end{align}",
    ]
    assert marks(KEY, "\n".join(rows)) == ["right"] * 3


def test_a_row_that_starts_with_a_sign_may_go_on_with_the_one_above_and_is_looked_at() -> None:
    assert marks(BOUND, "sum(x)/n <= max(x)\n- mean(x) >= -max(x)") == ["please look"]


def test_a_bound_with_its_sides_rearranged_is_looked_at() -> None:
    key = "given p, q: n simplex\nclaim KL(p, q) >= 0"
    assert marks(key, "claim H(p, q) >= H(p)") == ["please look"]
    assert marks(key, "claim H(p, q) >= H(q)") == ["missing"]


def test_a_let_of_the_key_may_be_written_out() -> None:
    assert marks(KEY, "claim dJ/dW == outer(x, softmax(x @ W) - y)")[0] == "right"


# -- no right answer is called missing or wrong because of how the sheet is laid out -----------------------------------------

KEY_OF_FOUR = """
given x: n
given p, q: n simplex
question 1
claim var(x) = mean(x**2) - mean(x)**2
question 2
claim KL(p, q) = H(p, q) - H(p)
question 3
claim H(p) <= log(n)
question 4
claim std(x)**2 <= mean(x**2)
"""
BULLETS = ["var(x) = mean(x**2) - mean(x)**2", "KL(p, q) = H(p, q) - H(p)", "H(p) <= log(n)", "var(x) <= mean(x**2)"]


def test_the_heading_decides_which_question_a_claim_in_other_words_answers() -> None:
    assert marks(KEY_OF_FOUR, "question 4\nclaim var(x) <= mean(x**2)") == ["missing"] * 3 + ["right"]


@pytest.mark.parametrize("title", ["My answers:", "Here are my answers."])
@pytest.mark.parametrize("bullet", "-*")
def test_items_below_a_title_are_answers_of_their_own(title: str, bullet: str) -> None:
    answer = "\n".join([title, *(f"{bullet} {item}" for item in BULLETS)])
    found = paper(KEY_OF_FOUR, answer).answers
    assert [a.mark for a in found] == ["please look"] * 4
    assert [len(a.parts[0].unreadable) for a in found[:3]] == [0] * 3  # each was found


@pytest.mark.parametrize("keyword", ["", "claim "])
def test_what_a_line_with_a_sign_before_it_may_answer_is_for_a_person(keyword: str) -> None:
    answer = f"{keyword}{BULLETS[0]}\n-KL(p, q) = H(p) - H(p, q)\nclaim {BULLETS[2]}"
    assert marks(KEY_OF_FOUR, answer)[1:3] == ["please look", "right"]
    assert marks(KEY_OF_FOUR, answer)[0] == "please look"  # it was read as one chain


def test_a_row_that_goes_on_with_a_formula_is_no_answer_of_its_own() -> None:
    answer = "claim KL(p, q) = H(p, q)\n  - H(p)"
    assert marks(KEY_OF_FOUR, answer) == ["missing", "right", "missing", "missing"]


def test_every_question_with_an_unreadable_line_below_its_name_is_for_a_person() -> None:
    answer = "question 1: the mean of squares =\nquestion 2: entropy that crosses =\nquestion 3\ngiven ? : n"
    assert marks(KEY_OF_FOUR, answer) == ["please look"] * 3 + ["missing"]


def test_a_bound_that_is_looser_by_less_than_doubles_tell_apart_is_for_a_person() -> None:
    assert marks(BOUND, "claim sum(x)/n <= max(x) + 1e-13*abs(max(x))") == ["please look"]
    assert marks("given x: n\nclaim norm(x) <= sum(abs(x))", "claim norm(x) <= (1 + 1e-13)*sum(abs(x))") == [
        "please look"
    ]
    assert marks("given x: n\nclaim norm(x) <= sum(abs(x))", "claim norm(x) <= n*mean(abs(x))") == ["right"]


@pytest.mark.parametrize(
    ("target", "value", "other"),
    [
        ("var(x)", "mean(x**2) - mean(x)**2", "std(x)**2"),
        ("trace(A @ B)", "sum(A * B.T)", "sum(diag(A @ B))"),
    ],
)
def test_the_question_in_another_function_is_for_a_person(target: str, value: str, other: str) -> None:
    key = f"given x: n\ngiven A: n, m\ngiven B: m, n\nclaim {target} = {value}"
    assert marks(key, f"claim {target} = {other}") == ["please look"]
    assert marks(key, f"claim {target} = {value} + 0") == ["right"]
