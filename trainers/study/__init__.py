"""What searches and reproductions share.

How long a run is (`budget`), what trains one (`trainer`), what several gave
(`outcome`) and how sure that is (`noise`).
"""
