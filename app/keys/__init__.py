"""API keys and tokens, which determine the tenant and the scopes of a caller."""
