"""The one place that holds the package's version."""

__version__ = "0.2.1.dev0"
