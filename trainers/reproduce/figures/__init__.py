"""What a reproduction draws, and what runs note down for it.

`plots` draws errors, curves and the paper's figures, `routing_dynamics` watches
figure 2, `authors_log` sets training errors beside the authors' own log.
"""
