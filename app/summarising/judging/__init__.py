"""The judgement of a model's answers, with the same rules for the prompts of all layers."""
