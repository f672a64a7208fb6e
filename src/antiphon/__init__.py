"""Antiphon: a Responses API server for models that people run themselves."""

__version__ = "0.1.0"
