"""Messages: append, read, edit, delete, hide, swipes."""
