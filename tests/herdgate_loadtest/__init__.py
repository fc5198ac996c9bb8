"""Tests of the herd kit."""
