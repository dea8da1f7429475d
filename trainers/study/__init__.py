"""What searches and reproductions share.

How long a run is (`budget`), what trains one (`trainer`) and how sure an
outcome is (`noise`).
"""
