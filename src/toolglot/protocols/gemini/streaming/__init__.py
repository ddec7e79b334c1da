"""The parts of a Gemini stream reader: the two forms of a stream, partial arguments, candidates."""
