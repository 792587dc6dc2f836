"""Other methods that this project is compared with."""
