"""A toy wire protocol, written as CONTRIBUTING.md says: one folder, a record, four codecs."""
