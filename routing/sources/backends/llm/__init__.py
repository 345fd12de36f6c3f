"""What the backends of language models share: their params, and how what a model wrote becomes an answer."""

from routing.sources.backends.llm.answers import Generated, Usage, answer_of, sample_of, schema_of, unwrapped
from routing.sources.backends.llm.params import SAMPLING
from routing.sources.backends.llm.sampling import Sampling, sampling_of
from routing.sources.backends.llm.tokens import Token, label_logprobs, most_read, stored_logprobs, without_end

__all__ = [
    "SAMPLING",
    "Generated",
    "Sampling",
    "Token",
    "Usage",
    "answer_of",
    "label_logprobs",
    "most_read",
    "sample_of",
    "sampling_of",
    "schema_of",
    "stored_logprobs",
    "unwrapped",
    "without_end",
]
