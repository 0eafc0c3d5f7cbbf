"""Adapters that let frameworks call models through deltafold, one module for each framework.

Each module needs the extra of its name, as `pip install 'deltafold[langchain]'`. Nothing is
imported before a module is.
"""
