"""What a memory layer is, and what exists once for all of them: jobs, questions to the model, staleness."""
