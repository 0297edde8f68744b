"""Scenes, the breaks between them, their recaps, and the running recap of all scenes."""
