"""A loss of one's own, as an installation would name it in HYPAC_LOSSES."""


class Half:
    """Half a loss for a near miss: dog for cat or cat for dog."""

    name = "half"
    bound = 1.0
    binary = False

    def __call__(self, label: str, prediction: str) -> float:
        if label == prediction:
            return 0.0
        return 0.5 if {label, prediction} == {"cat", "dog"} else 1.0


HALF = Half()


class Lists:
    """Whether two lists are equal, each written with `separator` between its values."""

    bound = 1.0
    binary = True

    def __init__(self, separator: str) -> None:
        self.separator = separator

    def __call__(self, label: str, prediction: str) -> float:
        return float(set(label.split(self.separator)) != set(prediction.split(self.separator)))
