"""Properties are judged by what they find, not by how fast a shared machine finds it."""

from hypothesis import settings

settings.register_profile("elastic", deadline=None)
settings.load_profile("elastic")
