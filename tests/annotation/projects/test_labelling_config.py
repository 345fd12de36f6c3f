"""Configurations of Label Studio: what a project is made of, what is refused, and the way back.

What is written is judged by Label Studio's own package.
"""

import pytest

from annotation.errors import InputError
from annotation.projects.choices import ChoiceSpec
from annotation.projects.label_studio_config import config_of, read_config, results_of
from annotation.projects.manage import create_project, set_choices
from annotation.task_types import TASK_TYPES
from testbed.factories import make_user

CHOICES = """<?xml version="1.0" encoding="utf-8"?>
<!-- ours --><View><Style>.a {}</Style><Header value="Which?"/><Text name="txt" value="$review"/>
<Choices name="sentiment" toName="txt" choice="single" showInLine="true">
  <Choice value="Positive" alias="pos" hotkey="1" background="green"/>
  <Choice value="Ünglücklich 🙁" hotkey="ctrl+2" background="#ABCDEF"/>
  <Choice value="None" hotkey="s" background="rgba(1,2"/>
</Choices></View>"""
VIEW = '<View><Text name="t" value="$text"/>{}</View>'


def test_choices_with_alias_hotkey_and_colour() -> None:
    config = read_config(CHOICES)
    assert (config.task_type, config.columns) == ("single_choice", ("review",))
    assert list(config.choices) == [
        ChoiceSpec("Positive", key="pos", hotkey="1", color="#008000"),
        ChoiceSpec("Ünglücklich 🙁", key="Ünglücklich 🙁", color="#abcdef"),
        ChoiceSpec("None", key="None"),
    ]
    assert (config.control.name, config.control.to_name, config.control.kind) == (
        "sentiment",
        "txt",
        "choices",
    )


@pytest.mark.parametrize(
    ("control", "task_type", "choices"),
    [
        ('<Choices name="c" toName="t" choice="multiple"><Choice value="a"/><Choice value="b"/></Choices>',
         "multiple_choice", ["a", "b"]),
        ('<Rating name="c" toName="t" maxRating="3"/>', "single_choice", ["1", "2", "3"]),
        ('<Rating name="c" toName="t"/>', "single_choice", ["1", "2", "3", "4", "5"]),
        ('<Number name="c" toName="t"/>', "number", []),
        ('<TextArea name="c" toName="t"/>', "short_text", []),
        ('<TextArea name="c" toName="t" rows="8"/>', "long_text", []),
    ],
)  # fmt: skip
def test_each_control_is_a_task_type(control, task_type, choices) -> None:
    config = read_config(VIEW.format(control))
    assert config.task_type == task_type
    assert [spec.name for spec in config.choices] == choices


def test_images_and_markdown() -> None:
    image = '<View><Image name="t" value="$url"/><Number name="c" toName="t"/></View>'
    assert read_config(image).shows_images
    shown = read_config(VIEW.format('<Markdown value="$text"/><Number name="c" toName="t"/>'))
    assert (shown.text_format, shown.shows_images) == ("markdown", False)


def test_all_that_cannot_be_used_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read_config(
            '<View><Audio name="a" value="$a"/><Labels name="l" toName="a"><Label value="x"/></Labels>'
            '<Text name="t" value="text"/><Choices name="c" toName="other"><Choice value="a">'
            '<Choice value="b"/></Choice></Choices></View>'
        )
    message = caught.value.message
    assert "Audio, Label, Labels" in message
    assert "belongs to “other”" in message
    assert "on one level" in message
    assert 'value="$field"' in message
    assert caught.value.where == "label_config"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><View/>', "document type or entities"),
        ("<View>", "no XML"),
        ("", "no XML"),
        ("plain", "no XML"),
        ("<View/>" + " " * 200_000, "more than 200,000"),
        ("<View/>", "asks nothing"),
        (VIEW.format('<Number name="a" toName="t"/><TextArea name="b" toName="t"/>'), "Number a, TextArea b"),
        (VIEW.format('<Choices name="a" toName="t" value="$options"/>'), "list them"),
    ],
)
def test_refusals(text, words) -> None:
    with pytest.raises(InputError, match=words.replace("$", r"\$")):
        read_config(text)


@pytest.mark.django_db
class TestProjects:
    def test_a_project_is_made_from_one_and_gives_it_back(self) -> None:
        project = create_project(user=make_user(), name="Reviews", label_config=CHOICES)
        assert project.task_type == "single_choice"
        assert list(project.choices.values_list("key", "name")) == [
            ("pos", "Positive"),
            ("Ünglücklich 🙁", "Ünglücklich 🙁"),
            ("None", "None"),
        ]
        assert config_of(project) == CHOICES.strip()

    def test_labels_and_a_configuration_exclude_each_other(self) -> None:
        with pytest.raises(InputError, match="not both"):
            create_project(
                user=make_user(), name="x", label_config=CHOICES, choices=[ChoiceSpec("a"), ChoiceSpec("b")]
            )

    def test_once_the_labels_have_changed_another_one_is_made(self) -> None:
        project = create_project(user=make_user(), name="Reviews", label_config=CHOICES)
        set_choices(project=project, user=project.created_by, choices=[ChoiceSpec("a"), ChoiceSpec("b")])
        again = read_config(config_of(project))
        assert [spec.name for spec in again.choices] == ["a", "b"]

    @pytest.mark.parametrize("task_type", TASK_TYPES)
    def test_what_is_written_is_valid_there_and_says_the_same_here(self, task_type) -> None:
        from label_studio_sdk.label_interface import LabelInterface  # takes two seconds

        choices = (
            [ChoiceSpec('A <b> & "c"', key="a"), ChoiceSpec("ב 🙂")]
            if TASK_TYPES[task_type].has_labels
            else []
        )
        project = create_project(user=make_user(), name="x", task_type=task_type, choices=choices)
        text = config_of(project)
        interface = LabelInterface(text)
        interface.validate()
        config = read_config(text)
        same = {"math": "short_text", "code": "long_text", "opaque": "long_text"}.get(task_type, task_type)
        assert config.task_type == same
        assert [spec.key for spec in config.choices] == [spec.key or spec.name for spec in choices]
        box = '[{"label":"a","x":10,"y":20.5,"width":30,"height":40}]'
        value = {
            **{"single_choice": "a", "multiple_choice": ["a", "ב 🙂"], "number": "-2.5", "boxes": box},
            "masks": '[{"label":"a","size":[4,6],"counts":[5,2,2,2,13]}]',
        }.get(task_type, "x\ny")
        result = results_of(value, config.control, name="1")
        assert interface.validate_annotation({"result": result}), result
        assert not interface.validate_prediction(
            {"model_version": "m", "score": 0.5, "result": result}, return_errors=True
        )
