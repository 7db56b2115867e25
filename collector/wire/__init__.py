"""What comes over the wire: bodies of POST /v1/events become checked batches."""
