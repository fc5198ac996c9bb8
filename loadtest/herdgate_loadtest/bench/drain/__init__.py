"""Drains of gateways behind a balancer, under a crowd that holds its sockets.

balancer    a TCP proxy that goes by /readyz, and can play one that cuts
gateways    what is drained
stage       all of it together
measure     one gateway after the other, all at once, and before a cut
"""
