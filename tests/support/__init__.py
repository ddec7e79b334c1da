"""What tests share, in one folder a subject. Tests import it as `support.…`; nothing here is collected by pytest."""
