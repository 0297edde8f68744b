"""Scenes, where they break, their recaps, and the running recap of all of them."""
