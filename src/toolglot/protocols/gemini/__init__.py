"""The Gemini generateContent protocol."""
