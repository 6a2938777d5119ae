"""The one exception that is meant for people: bad input, said in one line."""


class UserError(Exception):
    """Something the user can fix. The message names what is wrong, where, and how to fix it.

    The command prints it as one line without a traceback and exits with 2.
    """

    def __str__(self) -> str:
        """The message on one line, whatever it was made from."""
        return " ".join(super().__str__().split())
