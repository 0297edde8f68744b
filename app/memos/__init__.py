"""Memos: two or three highlights of every batch of messages, and the memos that people write."""
