"""The embedded simulator: a chat-completions provider and a search engine in one process, keyless, offline, loopback only.

Each completion is a function of the request body alone, its seed included, so that a run repeats whatever its timing; faults may also
depend on how often that body was seen. It shares no code with the actors that call it. Its runs are labelled simulated everywhere.
"""
