"""Wire formats: what goes over a connection, to canonical values and back.

Each protocol is a package with the same files: `endpoint.py` (its record), `request.py`, `reply.py`,
`stream_reader.py`, `stream_writer.py`, `errors.py`, `form.py`. `base.get(name)` returns the record, and
`base.register(package)` adds a protocol. A codec changes the shape only and never repairs a conversation. Decoding and
encoding in one protocol loses nothing: it gives back an equal JSON document.
"""
