"""The layer between HTTP and the application: connections, the OpenAPI schema, the API explorer."""
