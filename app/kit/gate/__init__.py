"""The gate before the database: decides which request gets the next connection, and which requests wait."""
