"""What every layer shares that makes text of messages: quoting them to a model, or quoting them without one."""
