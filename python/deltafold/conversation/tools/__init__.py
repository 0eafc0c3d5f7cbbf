"""Tools: functions that a model may call, and the reading of arguments."""
