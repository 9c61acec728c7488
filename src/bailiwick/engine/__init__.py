"""The pure engine: events in, decisions out. No I/O, no clock, no dice, no logging, no async."""
