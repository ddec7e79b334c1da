"""What people see and type: terminals, Markdown, transcripts, status lines."""
