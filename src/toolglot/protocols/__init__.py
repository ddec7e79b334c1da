"""Wire formats: what goes over a connection, to canonical values and back.

One package a protocol, with the same files in each: `endpoint.py` (its record), `request.py`, `reply.py`, `stream.py`,
`errors.py`. `base.get(name)` finds the record, and `base.register(package)` adds a protocol. A codec changes shape
only. It never repairs a conversation, and at home it loses nothing: decoding and encoding in one protocol gives back
an equal JSON document.
"""
