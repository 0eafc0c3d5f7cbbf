"""What a model may call: functions as tools, and the reading of arguments."""
