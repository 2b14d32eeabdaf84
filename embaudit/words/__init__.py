"""What people read: errors and their next step, sentences, masked secrets, names as a terminal shows them."""
