"""What runs of any optimiser share, whatever library runs them."""
