"""Keys, tokens and tenants: who may call, and whose data they reach."""
