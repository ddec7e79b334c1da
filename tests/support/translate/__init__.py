"""What a conversion must carry and report, and bodies to convert."""
