"""The vault: a chat with every layer as a zip, in Markdown for people and as JSON that restores it."""
