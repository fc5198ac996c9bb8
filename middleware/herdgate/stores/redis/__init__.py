"""The calendar of a fleet, in Redis."""
