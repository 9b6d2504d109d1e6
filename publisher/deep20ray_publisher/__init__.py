"""Signed artifacts in, a static site out.

It knows only verified artifacts and the rules: no provider, prompt, session, retry or credential code is imported, here or below.
"""

__version__ = "0.1.0"
