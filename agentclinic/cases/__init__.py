"""What a case is, where cases come from, and what is wrong with them."""
