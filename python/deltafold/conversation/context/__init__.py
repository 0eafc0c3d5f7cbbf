"""Context of a model: the state of an agent, its budget of tokens, its widgets."""
