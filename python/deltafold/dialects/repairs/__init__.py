"""Problems of a conversation that a provider would refuse, and their repair."""
