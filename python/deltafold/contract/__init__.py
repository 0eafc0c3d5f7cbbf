"""Base of all other rooms: the words of the contract, its exceptions, usage and wire forms.

Law: this room imports the extension, and nothing else of deltafold.
"""
