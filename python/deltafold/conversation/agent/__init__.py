"""The loop of a model and its tools: the turns of a run, their limits and their log."""
