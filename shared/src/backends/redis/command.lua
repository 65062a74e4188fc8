-- What is kept of a command. KEYS 1: its record.
return { now, command(KEYS[1]) }
