"""What makes an object invalid, kind by kind, in the words of the real server."""
