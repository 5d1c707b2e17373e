"""The abstract classes that plugins implement, and the engine that they talk to."""
