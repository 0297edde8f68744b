"""The log: chats, lines, messages, and the cut that says which of them are still sent verbatim."""
