"""Request bodies to the referee's own picture, one file a protocol; they share nothing with the codecs."""
