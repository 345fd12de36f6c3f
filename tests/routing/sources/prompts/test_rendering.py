"""Prompts filled in for items, and what is refused of them."""

import pytest
from hypothesis import given, strategies as st

from annotation.errors import InputError
from annotation.models import Item
from annotation.task_types import TASK_TYPES
from routing.sources.backends import Example, Prompt, TaskSpec
from routing.sources.prompts import (
    check_prompt,
    default_prompt,
    placeholders,
    prompt_digest,
    read_answer,
    render,
)

SPEC = TaskSpec(
    "single_choice",
    choices=(("cat", "Cat"), ("dog", "dog")),
    guidelines="Be *kind*.",
    columns=("text", "my column", "labels", "odd{name}"),
)
TYPES = list(TASK_TYPES)


def item(text: str = "a pet", **data: str) -> Item:
    return Item(external_id="t0", text=text, data=data)


def user(template: str, of: Item | None = None, **parts: object) -> str:
    return render(Prompt(template, **parts), SPEC, of or item()).user  # type: ignore[arg-type]


def test_placeholders_are_filled_in() -> None:
    assert user("{{ text }} / {{text}}") == "a pet / a pet"
    assert user("{{ labels }}") == "cat: Cat\ndog"
    assert user("{{ label_keys }}: {{ guidelines }}") == "cat, dog: Be *kind*."
    assert user("{{ my column }}", item(**{"my column": "x"})) == "x"
    assert user("{{ column:labels }}", item(labels="of the data")) == "of the data"


def test_a_column_that_an_item_lacks_is_empty() -> None:
    assert user("[{{ my column }}]") == "[]"


@given(
    st.text(max_size=80)
    | st.sampled_from(["{{ labels }}", "{{", "{{ text }}", "{% x %}", "{0}", "\\1", "\\g<1>"])
)
def test_the_text_of_an_item_changes_nothing_but_its_own_place(text: str) -> None:
    prompt = Prompt("A {{ labels }} B {{ text }} C {{ my column }} D", system="S {{ guidelines }}")
    messages = render(prompt, SPEC, item(text, **{"my column": text}))
    assert messages.user == f"A cat: Cat\ndog B {text} C {text} D"
    assert messages.system == "S Be *kind*."
    assert messages.turns == ()


def test_examples_are_turns_of_the_chat() -> None:
    example = Example({"text": "miaow {{ labels }}"}, "cat")
    messages = render(Prompt("Q: {{ text }}", system="S", examples=(example,)), SPEC, item("woof"))
    assert messages.as_chat() == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q: miaow {{ labels }}"},
        {"role": "assistant", "content": "cat"},
        {"role": "user", "content": "Q: woof"},
    ]


def test_examples_are_text_where_the_template_has_a_place_for_them() -> None:
    examples = (Example({"text": "miaow"}, "cat"), Example({"text": "woof"}, "dog"))
    messages = render(Prompt("{{ examples }}\n\n{{ text }}", examples=examples), SPEC, item("moo"))
    assert messages.user == "miaow\nAnswer: cat\n\nwoof\nAnswer: dog\n\nmoo"
    assert messages.turns == ()


def test_several_fields_of_an_example_are_named() -> None:
    examples = (Example({"text": "miaow", "my column": "1"}, "cat"),)
    prompt = Prompt("{{ examples }}|{{ text }}{{ my column }}", examples=examples)
    assert (
        render(prompt, SPEC, item("", **{"my column": ""})).user == "text: miaow\nmy column: 1\nAnswer: cat|"
    )


def test_an_image_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="t0 is an image"):
        render(None, SPEC, Item(external_id="t0", image_id=1))


@pytest.mark.parametrize("task_type", TYPES)
def test_every_task_type_has_a_prompt_of_its_own_that_can_be_used(task_type: str) -> None:
    spec = TaskSpec(task_type, SPEC.choices if "choice" in task_type else (), "Be kind.", ("text",))
    prompt = default_prompt(spec)
    check_prompt(prompt, spec)
    messages = render(None, spec, item("a pet"))
    assert "a pet" in messages.user
    assert "Be kind." in messages.user
    assert "{{" not in messages.user + messages.system
    assert ("cat: Cat" in messages.user) == bool(spec.choices)


def test_the_placeholders_of_a_project_are_listed() -> None:
    names = placeholders(SPEC)
    assert {"text", "labels", "guidelines", "examples", "my column", "column:labels"} <= set(names)
    assert not [name for name in names if "odd" in name]  # braces in a name could not be told apart
    assert "labels" not in placeholders(TaskSpec("number"))


@pytest.mark.parametrize(
    ("prompt", "where", "words"),
    [
        (Prompt("{{ txt }}"), "template", "no placeholder 'txt'; there are text"),
        (Prompt(""), "template", "what the model is to be asked"),
        (Prompt("What is it?"), "template", "Nothing of the item"),
        (Prompt("{{ text }}", system="{{ text }}"), "system", "filled in item by item"),
        (Prompt("{{ text }}", system="{{ x }}"), "system", "is none"),
        (Prompt("{{ text }}" + "x" * 50_000), "template", "characters"),
        (Prompt("{{ text }}\0"), "template", "NUL"),
        (
            Prompt("{{ text }}", examples=(Example({}, "cat"),)),
            "examples",
            "Example 1 lacks the field 'text'",
        ),
        (Prompt("{{ text }}", examples=(Example({"text": "a"}, "cow"),)), "examples", "unknown label 'cow'"),
        (Prompt("{{ text }}", examples=(Example({"text": "a"}, " "),)), "examples", "no answer"),
        (Prompt("{{ text }}", examples=(Example({"text": "a"}, "cat"),) * 51), "examples", "more than 50"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused(prompt: Prompt, where: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        check_prompt(prompt, SPEC)
    assert caught.value.where == where
    assert words in caught.value.message


def test_labels_are_no_placeholder_where_there_are_none() -> None:
    with pytest.raises(InputError, match="no placeholder 'labels'"):
        check_prompt(Prompt("{{ text }} {{ labels }}"), TaskSpec("number"))


def test_the_digest_follows_what_answers_depend_on() -> None:
    plain = Prompt("{{ text }}")

    def digest(prompt: Prompt | None = plain, **changes: object) -> object:
        return prompt_digest(prompt, TaskSpec(**{**vars(SPEC), **changes}))  # type: ignore[arg-type]

    first = digest()
    assert first == digest(columns=("other",)) == digest(Prompt("{{ text }}", number=7))
    assert first == digest(guidelines="other")  # it is not in this prompt
    assert first != digest(choices=(("cat", "Tom"), ("dog", "dog")))
    turned = (("dog", "dog"), ("cat", "Cat"))
    assert first == digest(choices=turned)  # the prompt does not list them
    assert digest(None) != digest(None, choices=turned)
    assert first != digest(task_type="multiple_choice")
    assert first != digest(Prompt("{{ text }}", system="s"))
    assert first != digest(Prompt("{{ text }}", examples=(Example({"text": "a"}, "cat"),)))
    assert digest(Prompt("{{ guidelines }}")) != digest(Prompt("{{ guidelines }}"), guidelines="other")
    assert digest(None) != digest(None, guidelines="other")


def test_answers_that_default_prompts_ask_for_are_read() -> None:
    assert read_answer("cat", SPEC).value == "cat"
    assert read_answer('["dog"]', TaskSpec("multiple_choice", SPEC.choices)).value == ["dog"]
    assert read_answer("12 - 5 = 7\nAnswer: 7", TaskSpec("number")).value == "7"
