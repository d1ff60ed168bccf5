"""What clients of vendor A and its own SDK say and hear in tests. Each call of the SDK imports this."""

import math
from array import array

REFERENCE = "Good morning, my friend."
SAID = "Good morning, how are you?"
TONE = array("h", (round(8000 * math.sin(at / 10)) for at in range(16_000))).tobytes()
PAUSE = bytes(32_000)
