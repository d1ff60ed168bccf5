"""How a stream lives: its actor, mailbox and context, their owner, and access from other processes."""
