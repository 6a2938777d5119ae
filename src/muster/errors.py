"""The one exception whose message is meant for the person at the keyboard: one line, and no traceback."""


class UserError(Exception):
    """Something the user gave cannot be used. The message says what, where, and how to put it right."""
