"""Good and faulty request bodies, and judges that share no code with the referee."""
