"""What a session keeps in a store, and what can be done with kept sessions."""
