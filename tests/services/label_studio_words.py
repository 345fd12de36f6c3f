"""A Label Studio ML backend that finds the names of labels in a text: `python FILE PORT FOLDER`.

Run with the Python of an environment that has the package label-studio-ml; it is no part of ours.
"""

import sys

from label_studio_ml.api import init_app
from label_studio_ml.model import LabelStudioMLBase


class Words(LabelStudioMLBase):
    """Fails on texts with "boom" in them."""

    def predict(self, tasks, **kwargs):
        name, control = next(iter(self.parsed_label_config.items()))
        field = control["inputs"][0]["value"]
        return [self._prediction(name, control, task["data"][field]) for task in tasks]

    def _prediction(self, name, control, text):
        if "boom" in text:
            raise ValueError(text)
        found = [label for label in control["labels"] if label in text]
        region = {
            "from_name": name,
            "to_name": control["to_name"][0],
            "type": control["type"].lower(),
            "value": {"choices": found},
        }
        return {"result": [region] if found else [], "score": 0.75}


if __name__ == "__main__":
    init_app(Words, model_dir=sys.argv[2]).run(host="127.0.0.1", port=int(sys.argv[1]), threaded=True)
