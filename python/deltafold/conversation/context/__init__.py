"""What a model is shown: the state of an agent, its budget of tokens, its widgets."""
