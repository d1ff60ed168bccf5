"""Speech by vendor A, Azure: recognition, synthesis and pronunciation assessment."""
