"""Which files are of a deployment, by their names."""

from pathlib import Path

__all__ = ["SUFFIXES", "is_deployment"]

SUFFIXES = (".yaml", ".yml", ".json", ".template")


def is_deployment(path: Path) -> bool:
    """Whether an argument is one; a file with another name holds settings of our own."""
    return path.is_dir() or path.suffix in SUFFIXES
