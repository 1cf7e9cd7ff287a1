"""Handing sessions on to the next generation of the code, in this process or in another one, while they are used."""
