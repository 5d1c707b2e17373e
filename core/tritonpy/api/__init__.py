"""The abstract classes that plugins implement, and the engine interface that they call."""
