"""What is known: statements with a scope, and which lines of which chats taught them."""
