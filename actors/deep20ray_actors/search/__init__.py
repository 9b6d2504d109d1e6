"""The Oracle's search tools."""
