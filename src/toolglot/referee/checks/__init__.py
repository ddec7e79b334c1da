"""What a target refuses, one file a subject: a check reads the picture of a request and yields what breaks a rule."""
