"""Artifacts: the public tables of a run, the statement over them, its signature, and the checks that a reader runs.

What verifies never imports what signs. Nothing here knows of models, providers, prompts or Ray.
"""
