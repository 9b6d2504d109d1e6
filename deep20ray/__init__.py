"""The rules of the game: answers, editions, subjects, actions, play, adjudication, seeds and score.

Pure and typed: nothing here does I/O, reads a clock, draws random numbers or knows that models exist.
"""

__version__ = "0.1.0"
