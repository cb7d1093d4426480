"""Stop garbage collection in the process that commands are forked from, while it loads: all that stays."""

import gc

gc.disable()
