"""Advice from the event log of an application that ran without the plugin; nothing here reads files."""
