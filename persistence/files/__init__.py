"""Files of any content and any name, the few system calls, and the thread that makes them."""
