"""Bodies that break their protocol although it is plain what they mean, read as what they mean."""
