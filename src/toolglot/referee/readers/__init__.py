"""Request bodies to the referee's own view, one file per protocol. They share nothing with the codecs."""
