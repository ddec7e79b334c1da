"""What a target refuses, one file per subject. A check reads the view of a request and yields breaches of a rule."""
