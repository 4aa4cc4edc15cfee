"""What fitted estimators predict, and with what certainty."""
