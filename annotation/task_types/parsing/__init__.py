"""How a value is read out of what a model wrote: what several task types share, and what is long."""
