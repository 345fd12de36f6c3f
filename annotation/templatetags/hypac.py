"""How numbers, money, sizes and times are written on every page, in the language of the reader; how much
of texts that others stored.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template
from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from annotation.common import limits
from annotation.common.markdown import shown_guidelines, shown_item

register = template.Library()


@register.simple_tag
def csrf_cookie() -> str:
    """The name of the cookie from which scripts take what their requests have to show."""
    return settings.CSRF_COOKIE_NAME


@register.filter
def refused_fields(form: Any) -> list[tuple[Any, str]]:
    """Fields with errors that people see, of a form or a formset, each with the id of its first control."""
    forms = getattr(form, "forms", [form]) if form else []
    fields = [field for one in forms for field in one if field.errors and not field.is_hidden]
    # Of several controls each has an id of its own, and the label belongs to none.
    return [(field, field.id_for_label or f"{field.auto_id}_0") for field in fields]


@register.filter
def percent(share: Any, digits: int = 1) -> str:
    """A share in [0, 1] (or below 0, for a loss) in percent: 0.05 -> "5 %"; None -> a dash."""
    if share is None or share == "":
        return "–"
    value = (Decimal(str(share)) * 100).quantize(Decimal(1).scaleb(-int(digits)))
    text = _without_padding(value)
    return f"{_written('0' if text in ('-0', '') else text)}\N{NO-BREAK SPACE}%"


@register.filter
def code_spans(words: Any) -> SafeString:
    """What stands between backticks as code, all of it escaped."""
    parts = str(words).split("`")
    return format_html_join(
        "",
        "{}",
        ((format_html("<code>{}</code>", part) if odd % 2 else part,) for odd, part in enumerate(parts)),
    )


@register.filter
def pairs(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Keys with their values. A template takes `mapping.items` for the value of a key "items"."""
    return list(mapping.items())


@register.filter
def number(value: Any) -> str:
    """A whole number with thin groups of three: 12345 -> "12,345"; None -> a dash."""
    return "–" if value is None or value == "" else _grouped(str(int(value)))


@register.filter
def money(amount: Any, currency: str = "") -> str:
    """An amount with its unit, at least two digits, more only where the amount needs them (0.0004).

    What is counted in something else than money has none where it is whole: 1808 -> "1,808 tokens".
    """
    if amount is None or amount == "":
        return "–"
    value = Decimal(str(amount))
    digits = (
        2 if value == 0 or abs(value) >= Decimal("0.1") else 6 if abs(value) >= Decimal("0.00001") else 10
    )
    if currency and not _is_money(currency) and value == value.to_integral_value():
        digits = 0
    text = f"{value:.{digits}f}"
    if digits > 2:
        whole, point, rest = text.partition(".")
        text = f"{whole}{point}{rest.rstrip('0').ljust(2, '0')}"
    text = _grouped(text)
    return f"{text}\N{NO-BREAK SPACE}{currency}" if currency else text


def _is_money(currency: str) -> bool:
    """By its code (EUR), or a sign that is no letter."""
    return not currency.isalpha() or (len(currency) == 3 and currency.isupper())


@register.filter
def decimal(value: Any) -> str:
    """A decimal without padding zeros: 0.05000000 -> "0.05"."""
    if value is None or value == "":
        return "–"
    return _written(_without_padding(Decimal(str(value))))


def _without_padding(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _written(text: str) -> str:
    """Digits with a point, as the reader's language writes them: "0.05" -> "0,05" in French."""
    return text.replace(".", str(formats.get_format("DECIMAL_SEPARATOR")))


def _grouped(text: str) -> str:
    """The same with groups of three: "12345.60" -> "12,345.60"."""
    whole, point, rest = text.partition(".")
    groups = f"{int(whole):,}".replace(",", str(formats.get_format("THOUSAND_SEPARATOR")))
    if whole.startswith("-") and not groups.startswith("-"):
        groups = f"-{groups}"  # of -0.5, whose whole part is 0
    return groups + _written(point + rest)


@register.filter
def size(count: Any) -> str:
    """Bytes in words."""
    return filesizeformat(count)


@register.filter
def moment(when: datetime | None) -> SafeString | str:
    """A point in time as <time>; site.js shows it in the reader's zone."""
    if when is None:
        return "–"
    local = timezone.localtime(when)
    return format_html(
        '<time datetime="{}">{}</time>', when.isoformat(), formats.date_format(local, "j M Y, H:i T")
    )


@register.filter
def duration(seconds: Any) -> str:
    """Seconds in words that a glance can take in: 40 s, 3 min, 2 h 10 min."""
    if seconds is None:
        return ""
    whole = max(0, round(float(seconds)))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{round(whole / 60)} min"
    hours, rest = divmod(round(whole / 60), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


@register.filter
def at_most(value: Any, limit: str) -> str:
    """So many characters of what others stored as annotation.common.limits says under this name."""
    return Truncator(value).chars(getattr(limits, limit))


register.filter(shown_item)
register.filter(shown_guidelines)


@register.filter
def lookup(mapping: Any, key: Any) -> Any:
    """`mapping[key]`, "" where there is none; templates cannot index by a variable."""
    try:
        return mapping[key]
    except (KeyError, IndexError, TypeError):
        return ""
