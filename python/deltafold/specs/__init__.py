"""Schemas: of tools, of their arguments, and of the output that a call asks for."""
