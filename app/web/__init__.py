"""The API explorer and the OpenAPI schema."""
