"""Tests of herdgate. The folders mirror the source trees; what belongs to the repository as a whole lies here."""
