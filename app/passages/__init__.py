"""The index of words: by which words each message can be found, so that a search need not read a whole chat."""
