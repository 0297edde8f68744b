"""Tests of vaults."""
