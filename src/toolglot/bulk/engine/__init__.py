"""Engines: files of rows in shards, each of which is converted by itself, on one machine or on Ray.

`plan.py` cuts the input into shards once; `shard.py` converts one; `local.py` and `on_ray.py` run them; `assembly.py`
puts the parts together. Law: the plan decides the bytes, not who ran it, how many there were, or what died.
"""
