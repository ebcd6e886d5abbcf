"""Names of files."""

ENDING = ".ssn.safetensors"
"""The end of the name of a distribution file."""
