"""The adumbra command."""
