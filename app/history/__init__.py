"""The history: where the messages that are sent verbatim begin."""
