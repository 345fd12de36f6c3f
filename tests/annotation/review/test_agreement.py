"""What is computed from several people's answers: against published tables, and on what people gave here."""

import random

import numpy as np
import pytest
from django.urls import reverse
from scipy import sparse
from sklearn.metrics import cohen_kappa_score

from annotation.errors import InputError
from annotation.labelling import dawid_skene as dawid_skene_module, queue
from annotation.labelling.dawid_skene import dawid_skene
from annotation.labelling.settlement import adjudicate
from annotation.models import Label, Project, User, WorkBatch, WorkItem
from annotation.review import agreement as measures, agreement_queries as selectors, compared_items
from annotation.review.agreement import answers_of
from annotation.review.agreement_queries import agreement, agreement_by_annotator
from annotation.task_types import TASK_TYPES
from routing.core.losses import masks
from testbed.factories import add_member, make_items, make_project

# K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011: four observers, twelve units.
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
# The example of Wikipedia's article on Fleiss' kappa: ten subjects, fourteen raters, five categories.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Dawid and Skene 1979, table 1: of 45 patients what an anaesthetist said three times, and four others once.
ANAESTHETISTS = (
    "1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 "
    "1111111 2223212 1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 "
    "1111111 1111111 2322222 1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 "
    "2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222"
)


def of_observers(lines: tuple[str, ...]) -> measures.Answers:
    table = [
        (unit, rater, int(value))
        for rater, line in enumerate(lines)
        for unit, value in enumerate(line)
        if value != "."
    ]
    return answers_of(table)[0]


class TestMeasures:
    def test_krippendorffs_own_example(self) -> None:
        answers = of_observers(KRIPPENDORFF)
        assert measures.nominal(answers.counts).alpha.value == pytest.approx(0.743, abs=5e-4)
        numbers = np.array(answers.names, dtype=float)[answers.values]
        assert measures.krippendorff_interval(answers.units, numbers).value == pytest.approx(0.849, abs=5e-4)

    def test_fleiss_example(self) -> None:
        together = measures.nominal(sparse.csr_array(np.array(FLEISS, dtype=float)))
        assert together.equal.value == pytest.approx(0.378, abs=5e-4)
        assert together.fleiss.value == pytest.approx(0.210, abs=5e-4)

    def test_cohen_by_hand_and_as_scikit_learn_has_it(self) -> None:
        # Of 50 grants both say yes to 20 and no to 15; 5 and 10 times they differ: (0.7 - 0.5) / (1 - 0.5).
        one = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
        other = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
        assert measures.cohen_kappa(one, other) == pytest.approx(0.4)
        draw = np.random.default_rng(3)
        for _ in range(20):
            one = draw.integers(0, 5, 40)
            other = np.where(draw.random(40) < 0.5, one, draw.integers(0, 5, 40))
            assert measures.cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other))

    def test_two_equal_and_two_different_answers_by_hand(self) -> None:
        # Two units, "aa" and "ab": P = 1/2; shares 3/4 and 1/4, so P_e = 5/8. D_o = 1/2, D_e = 6/12.
        together = measures.nominal(sparse.csr_array(np.array([[2.0, 0.0], [1.0, 1.0]])))
        assert together.equal.value == pytest.approx(1 / 2)
        assert together.fleiss.value == pytest.approx(1 - (1 / 2) / (3 / 8))
        assert together.alpha.value == pytest.approx(0)

    def test_perfect_agreement_is_one_and_one_value_alone_is_undefined(self) -> None:
        perfect = measures.nominal(sparse.csr_array(np.diag([3.0, 3.0, 2.0])))
        assert (perfect.equal.value, perfect.fleiss.value, perfect.alpha.value) == (1, 1, 1)
        same = measures.nominal(sparse.csr_array(np.array([[3.0], [2.0]])))
        assert (same.equal.value, same.fleiss.value, same.alpha.value) == (1, None, None)
        assert measures.cohen_kappa(np.zeros(5, dtype=int), np.zeros(5, dtype=int)) is None

    def test_nothing_to_compare(self) -> None:
        alone = answers_of([("a", "ann", 1), ("b", "ben", 2)])[0]
        together = measures.nominal(alone.counts)
        assert (together.equal.value, together.alpha.value) == (None, None)
        assert measures.krippendorff_interval(alone.units, np.array([1.0, 2.0])).value is None
        assert measures.nominal(answers_of([])[0].counts).equal.value is None
        assert measures.cohen_kappa(np.zeros(0, dtype=int), np.zeros(0, dtype=int)) is None

    def test_alpha_of_numbers_knows_no_unit_and_no_origin(self) -> None:
        answers = of_observers(KRIPPENDORFF)
        numbers = np.array(answers.names, dtype=float)[answers.values]
        plain = measures.krippendorff_interval(answers.units, numbers).value
        for changed in (numbers + 1e6, numbers * 1e150, -numbers / 7):
            found = measures.krippendorff_interval(answers.units, changed).value
            assert found == pytest.approx(plain, abs=1e-6)

    def test_the_interval_holds_the_true_value_about_as_often_as_it_says(self) -> None:
        # Two raters who are right with 0.8, else guess among four: the alpha of endless data is 0.64.
        draw, inside = np.random.default_rng(11), 0
        for _ in range(60):
            truth = draw.integers(0, 4, 120)
            said = [np.where(draw.random(120) < 0.8, truth, draw.integers(0, 4, 120)) for _ in range(2)]
            counts = sum(np.eye(4)[answer] for answer in said)
            alpha = measures.nominal(sparse.csr_array(counts)).alpha
            inside += alpha.low <= 0.64 <= alpha.high
        assert inside >= 51  # a binomial variable with 0.95 is below this once in 2,000

    def test_the_same_answers_give_the_same_interval(self) -> None:
        counts = sparse.csr_array(np.array(FLEISS, dtype=float))
        assert measures.nominal(counts) == measures.nominal(counts)


class TestDawidSkene:
    def test_the_anaesthetists(self) -> None:
        rows = [
            (patient, rater, value)
            for patient, line in enumerate(ANAESTHETISTS.split(), start=1)
            for rater, value in zip((1, 1, 1, 2, 3, 4, 5), line, strict=True)
        ]
        found = dawid_skene(rows)
        values = [value for value, _ in found.values()]
        # The marginals of the paper: 0.40, 0.42, 0.11, 0.07.
        assert [values.count(label) for label in "1234"] == [18, 19, 5, 3]
        assert found[7] == ("1", pytest.approx(0.981, abs=5e-4))
        assert found[35] == ("2", pytest.approx(0.948, abs=5e-4))
        assert found[38] == ("3", pytest.approx(0.979, abs=5e-4))
        random.Random(5).shuffle(rows)
        assert dawid_skene(rows) == found

    def test_who_is_often_wrong_counts_less(self) -> None:
        draw = random.Random(2)
        rows, truth = [], {}
        for item in range(300):
            truth[item] = draw.choice("xy")
            for rater, right in ((1, 0.95), (2, 0.55), (3, 0.55)):
                wrong = "y" if truth[item] == "x" else "x"
                rows.append((item, rater, truth[item] if draw.random() < right else wrong))
        found = dawid_skene(rows)
        by_model = sum(found[item][0] == truth[item] for item in truth)
        by_majority = sum(
            [value for at, _, value in rows if at == item].count(truth[item]) >= 2 for item in truth
        )
        assert by_model > by_majority + 30
        assert all(0.5 <= probability <= 1 for _, probability in found.values())

    def test_of_equally_likely_values_the_first_is_taken(self) -> None:
        assert dawid_skene([(1, 1, "b"), (1, 2, "a")])[1] == ("a", pytest.approx(0.5))

    def test_several_choices_come_back_as_lists(self) -> None:
        assert dawid_skene([(1, 1, ["a", "b"]), (1, 2, ["a", "b"]), (1, 3, [])])[1][0] == ["a", "b"]

    def test_nothing_gives_nothing(self) -> None:
        assert dawid_skene([]) == {}

    def test_texts_without_end_are_refused(self, monkeypatch) -> None:
        monkeypatch.setattr(dawid_skene_module, "MAX_CELLS", 10)
        with pytest.raises(InputError, match="meant for choices"):
            dawid_skene([(item, 1, f"text {item}") for item in range(10)])


# --- On stored answers --------------------------------------------------------------------------------------


class Team:
    """A project in which three people answer, each row of `answers` about one item."""

    def __init__(
        self, answers: list[tuple], *, task_type: str = "single_choice", blind: bool = False
    ) -> None:
        choices = ("cat", "dog", "emu") if TASK_TYPES[task_type].has_choices or task_type in SHAPES else ()
        self.project: Project = make_project(task_type=task_type, choices=choices)
        self.people: list[User] = [add_member(self.project) for _ in range(len(answers[0]))]
        self.batch = self.add(answers, blind=blind)

    def add(self, answers: list[tuple], *, blind: bool = False) -> WorkBatch:
        self.items = make_items(self.project, len(answers))
        batch = queue.create_batch(
            project=self.project,
            item_ids=[item.pk for item in self.items],
            blind=blind,
            priority=1,
            entropy=3,
            overlap=len(answers[0]),
        )
        rows = {item.pk: row for item, row in zip(self.items, answers, strict=True)}
        for index, person in enumerate(self.people):
            while task := queue.claim(project=self.project, user=person):
                value = rows[task.item.pk][index]
                if value is None:
                    queue.skip(
                        user=person, work_item_id=task.work_item.pk, token=task.token, reason="unclear"
                    )
                    continue
                queue.submit(
                    user=person,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=value,
                    idempotency_key=f"{batch.pk}-{task.work_item.pk}",
                )
        return batch


SHAPES = ("boxes", "masks")
C, D, E = "cat", "dog", "emu"
ROWS = [(C, C, C), (C, C, D), (D, D, D), (D, D, C), (E, E, E), (C, D, E)]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_figures_of_three_people() -> None:
    found = agreement(Team(ROWS).project)
    assert (found.items, found.used, found.answers) == (6, 6, 18)
    assert found.together.equal.value == pytest.approx((3 + 2 / 3) / 6)
    kappas = {(pair.first.pk, pair.second.pk): pair for pair in found.pairs}
    assert len(kappas) == 3
    assert all(pair.shared == 6 for pair in found.pairs)
    assert [pair.kappa for pair in found.pairs] == sorted(pair.kappa for pair in found.pairs)
    by_key = {entry.choice.key: entry for entry in found.choices}
    assert [by_key[key].given for key in (C, D, E)] == [7, 7, 4]
    # Of "cat": 3 units with 3, 2 and 1 of 3, and one with 1 of 3: (6 + 2) / (6 + 4 + 2 + 2).
    assert by_key[C].again == pytest.approx(8 / 14)
    assert [(entry.first.key, entry.second.key, entry.pairs) for entry in found.confused[:2]] == [
        (C, D, 5),
        (D, C, 5),
    ]
    rows = {choice.key: shares for choice, shares in found.confusion}
    assert rows[C] == pytest.approx([8 / 14, 5 / 14, 1 / 14])
    assert found.interval is None
    assert not found.left_out


def test_pairs_as_scikit_learn_has_them() -> None:
    team = Team(ROWS)
    for pair in agreement(team.project).pairs:
        places = [team.people.index(pair.first), team.people.index(pair.second)]
        columns = [[row[place] for row in ROWS] for place in places]
        assert pair.kappa == pytest.approx(cohen_kappa_score(*columns))


def test_people_beside_the_record_and_the_others() -> None:
    team = Team(ROWS)
    found = agreement_by_annotator(team.project)
    assert [found[person.pk].answers for person in team.people] == [6, 6, 6]
    # Five items have a majority; the third person is against two of them.
    assert [found[person.pk].share_equal_to_record for person in team.people] == [1, 1, pytest.approx(3 / 5)]
    assert found[team.people[2].pk].kappa < found[team.people[0].pk].kappa
    adjudicate(batch=team.batch, item=team.items[5], actor=team.project.created_by, value=E)
    found = agreement_by_annotator(team.project)
    assert found[team.people[2].pk].share_equal_to_record == pytest.approx(4 / 6)


def test_a_correction_counts_instead_of_what_it_corrects() -> None:
    team = Team([(C, C, C), (D, D, C)])
    label = Label.objects.get(item=team.items[1], annotator=team.people[2])
    assert agreement(team.project).together.equal.value < 1
    queue.correct(user=team.people[2], label_id=label.pk, value=D, idempotency_key="corrected")
    assert agreement(team.project).together.equal.value == 1


def test_items_with_one_answer_do_not_count() -> None:
    team = Team([(C, C), (C, D)])
    single = make_items(team.project, 2)
    batch = queue.create_batch(
        project=team.project, item_ids=[i.pk for i in single], blind=False, priority=2, entropy=1, overlap=2
    )
    task = queue.claim(project=team.project, user=team.people[0])
    queue.submit(
        user=team.people[0], work_item_id=task.work_item.pk, token=task.token, value=D, idempotency_key="x"
    )
    assert WorkItem.objects.filter(batch=batch, state="done").count() == 1
    found = agreement(team.project)
    assert (found.items, found.answers) == (2, 4)


def test_what_is_hidden_is_left_out_and_it_is_said(bare_port) -> None:
    team = Team([(C, C), (C, C)])
    hidden = team.add([(C, D)] * 3, blind=True)
    assert agreement(team.project).items == 5
    bare_port.hidden_batches = lambda project: {hidden.pk}
    found = agreement(team.project)
    assert (found.items, found.together.equal.value, found.left_out) == (2, 1, True)
    assert {entry.answers for entry in agreement_by_annotator(team.project).values()} == {2}


def test_another_project_does_not_count() -> None:
    Team(ROWS)
    found = agreement(make_project())
    assert (found.items, found.answers, found.pairs, found.people) == (0, 0, [], [])
    assert found.together.alpha.value is None


def test_of_many_items_a_sample_is_taken(monkeypatch, settings) -> None:
    team = Team(ROWS)
    monkeypatch.setattr(compared_items, "MAX_ITEMS", 4)
    found = agreement(team.project)
    assert (found.items, found.used, found.answers) == (6, 4, 12)
    assert agreement(team.project) == found
    samples = set()
    for settings.SECRET_KEY in "abcdefgh":  # who does not know it does not know the sample
        samples.add(frozenset(selectors._several(team.project, set()).units))
    assert len(samples) > 1


def test_of_many_people_those_with_the_most_answers_are_compared(monkeypatch) -> None:
    team = Team(ROWS)
    monkeypatch.setattr(selectors, "MAX_PEOPLE", 2)
    found = agreement(team.project)
    assert (len(found.pairs), found.people_left_out, len(found.people)) == (1, 1, 3)


def test_several_choices_are_equal_as_sets_and_compared_label_by_label() -> None:
    team = Team([([C, D], [D, C]), ([C], [C, D]), ([], []), ([E], [C])], task_type="multiple_choice")
    found = agreement(team.project)
    assert found.together.equal.value == pytest.approx(2 / 4)
    by_key = {entry.choice.key: entry for entry in found.choices}
    assert [by_key[key].given for key in (C, D, E)] == [5, 3, 1]
    assert [by_key[key].again for key in (C, D, E)] == [pytest.approx(4 / 5), pytest.approx(2 / 3), 0]
    assert found.confusion == []


def test_numbers_have_a_distance() -> None:
    near = agreement(Team([(str(n), str(n + 1)) for n in range(0, 100, 10)], task_type="number").project)
    far = agreement(Team([(str(n), str(90 - n)) for n in range(0, 100, 10)], task_type="number").project)
    assert near.together.equal.value == 0
    assert near.interval.value > 0.99
    assert far.interval.value < -0.8


def test_texts_are_equal_whatever_their_case_and_white_space() -> None:
    team = Team([("Red  house", "red house"), ("a", "b")], task_type="short_text")
    assert agreement(team.project).together.equal.value == pytest.approx(1 / 2)
    assert TASK_TYPES["math"].comparable("x + 1") == TASK_TYPES["math"].comparable("x+1")
    assert TASK_TYPES["code"].comparable("x + 1") != TASK_TYPES["code"].comparable("x+1")


def cat_mask(inside: int) -> str:
    """On an image of ten by ten pixels, of which the last are outside."""
    return f'[{{"label":"cat","size":[10,10],"counts":[0,{inside},{100 - inside}]}}]'


MASKS = [(cat_mask(50), cat_mask(51), cat_mask(52)), (cat_mask(60), cat_mask(59), cat_mask(10))]


def test_of_masks_each_text_is_read_once_and_each_two_are_compared_once(monkeypatch) -> None:
    team = Team(MASKS, task_type="masks")
    masks.read_masks.cache_clear()
    read, compared = [], []
    read_list, dice = masks.read_list, masks.dice
    monkeypatch.setattr(masks, "read_list", lambda text, most: (read.append(text), read_list(text, most))[1])
    monkeypatch.setattr(
        masks, "dice", lambda one, other: (compared.append({one, other}), dice(one, other))[1]
    )
    found = agreement(team.project)
    assert (found.used, found.together.equal.value) == (2, pytest.approx((1 + 1 / 3) / 2))
    assert sorted(read) == sorted(text for row in MASKS for text in row)
    pairs = [frozenset(pair) for pair in compared]
    # Three of each item, and what counts of an answer beside what the item was settled to.
    assert len(pairs) <= 6 + 4
    assert {person.agreement.share_equal_to_record for person in found.people} == {1.0, 0.5}


def test_of_long_answers_that_a_loss_compares_so_many_are_read_as_one_page_can(
    client_of, monkeypatch
) -> None:
    team = Team(MASKS * 5, task_type="masks")
    monkeypatch.setattr(compared_items, "MAX_CHARACTERS", 4 * 3 * len(cat_mask(50)))
    found = agreement(team.project)
    assert found.items == 10
    assert found.used == 3
    assert found.answers == 3 * found.used
    assert all(person.agreement.sampled for person in found.people)
    client, slug, (person, *_) = client_of(team.project.created_by), team.project.slug, team.people
    for name, *more in (("members",), ("member", person.pk), ("progress",)):
        page = client.get(reverse(name, args=[slug, *more])).content.decode()
        assert "of a random sample of the items" in page, name
    project = f"/api/v1/projects/{slug}"
    assert client.get(f"{project}/members/{person.pk}/").json()["work"]["agreement"]["sampled"]
    assert client.get(f"{project}/progress/").json()["agreement_sampled"]
    assert agreement(team.project) == found
    monkeypatch.setattr(compared_items, "MAX_CHARACTERS", 1)
    assert agreement(team.project).used == 1
