"""What holds for every test: hypothesis never fails a test for being slow on a busy machine."""

from hypothesis import settings

settings.register_profile("deep20ray", deadline=None)
settings.load_profile("deep20ray")
