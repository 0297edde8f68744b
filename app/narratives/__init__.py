"""Texts that grow by folding new material into their former version: what summary, diary and running recap share."""
