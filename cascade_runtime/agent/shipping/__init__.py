"""Ships what this host's actors recorded to a collector: ``shipper`` is what the agent's loop sees.

tail -> spool -> courier -> delivery -> link: one actor's segments, all of this host's, when to send
what, what a refusal means, one HTTP connection.
"""
