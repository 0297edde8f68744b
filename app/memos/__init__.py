"""Memos: 2–3 highlights of every batch, and the memories that a person wrote. The first layer; others copy it."""
