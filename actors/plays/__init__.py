"""What streams do: a turn of a conversation, text to speech, pronunciation assessment, and their parts."""
