"""A made-up truth to rehearse against: worlds, and a stand-in server that obeys them."""
