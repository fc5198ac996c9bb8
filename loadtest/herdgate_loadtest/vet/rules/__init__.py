"""What is known to make a herd, read off the settings. Pure; knows nothing of the simulation.

Rules: a rule that fires is an error if one of its settings was said, otherwise a warning; an absent setting that a
careful reader would ask for is a warning too. Only errors make a client unsafe.
"""

from herdgate_loadtest.vet.rules.judge import Finding, findings
from herdgate_loadtest.vet.rules.rule import Rule, Severity
from herdgate_loadtest.vet.rules.table import RULES

__all__ = ["RULES", "Finding", "Rule", "Severity", "findings"]
