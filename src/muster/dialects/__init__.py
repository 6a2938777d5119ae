"""Every spelling of a gang: how it is read, and its verbs: stop, resume, resize, report."""
