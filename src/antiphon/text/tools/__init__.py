"""Dialects: how model families write calls. One file per family."""
