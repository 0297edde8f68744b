"""The diaries: what a character wrote down, and the older part of it, folded in the character's own voice."""
