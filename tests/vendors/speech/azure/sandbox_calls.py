"""Requests to the sandboxed Azure."""

ID, OTHER = "0" * 31 + "a", "0" * 31 + "b"
SSML = (
    '<speak version="1.0" xmlns="http://www.w3.org/2001/10/synthesis" xml:lang="en-US">'
    '<voice name="{voice}">{text}</voice></speak>'
)
SHORT = "/azure/stt/speech/recognition/conversation/cognitiveservices/v1"
