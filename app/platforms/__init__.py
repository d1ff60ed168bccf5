"""Payment platforms as several areas use them: our apps at PayPal, and events that no webhook delivered."""
