"""What the backends of language models share: their params, and how what a model wrote becomes an answer."""

from routing.backends.llm.answers import Generated, Usage, answer_of, sample_of
from routing.backends.llm.labels import label_logprobs
from routing.backends.llm.sampling import SAMPLING_PARAMS, Sampling, read_sampling
from routing.backends.llm.structured import schema_of, unwrapped
from routing.backends.llm.tokens import Token, most_read, stored_logprobs, without_end

__all__ = [
    "SAMPLING_PARAMS",
    "Generated",
    "Sampling",
    "Token",
    "Usage",
    "answer_of",
    "label_logprobs",
    "most_read",
    "read_sampling",
    "sample_of",
    "schema_of",
    "stored_logprobs",
    "unwrapped",
    "without_end",
]
