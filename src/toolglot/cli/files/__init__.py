"""Files that commands read: transcripts, places in them, what is found there."""
