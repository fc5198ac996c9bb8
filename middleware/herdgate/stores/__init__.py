"""Where a calendar lives. Each store answers the same question: `herdgate.core.admission` asks, a store grants."""
