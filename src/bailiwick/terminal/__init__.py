"""How commands speak to a terminal: clean texts, widths, spans of time, tables."""
