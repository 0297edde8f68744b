"""Diaries of scope `character`: contexts also show what the character wrote in the user's other chats."""
