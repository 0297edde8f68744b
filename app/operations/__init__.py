"""Endpoints for operators: health, readiness, background work, usage and metrics."""
