"""Steps of household tasks: MiTa and the methods it is compared with."""
