"""Core blocks: short texts that are always in the prompt and that people and characters edit."""
