"""Recorded games, played again by the whole system and compared: ``python -m tests.replay DATA [--out DIR]``."""
