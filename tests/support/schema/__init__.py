"""Tool schemas: generated, real, and judges of lowered ones."""
