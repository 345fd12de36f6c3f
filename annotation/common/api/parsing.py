"""The body of a request to the API. The settings name it, so it imports no views."""

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class ShallowJSONParser(JSONParser):
    """JSON that nests so deeply that it cannot be read is refused like any other that cannot."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError("JSON parse error - lists and objects are nested too deeply") from None
