"""One judgement of a model's answers, for the prompts of all layers."""
