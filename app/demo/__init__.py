"""The demo: plays a conversation into the service and shows the memory that results."""
