// The events of streams. `id` counts 1, 2, 3… in a stream, and `timestamp` is the time in Unix milliseconds.

import type {
  AssistantOutputAudioChunkContent,
  AssistantOutputAudioContent,
  AssistantOutputChunkContent,
  AssistantOutputContentSegmentContent,
  AssistantOutputRestartContent,
  AssistantOutputVisemeContent,
  AudioChunkContent,
  AudioContent,
  ConversationEnd,
  EndOfSpeechContent,
  SpeechEnd,
  VisemeEventContent,
} from "../api.js";

export interface StreamEvent<Name extends string = string, Content = unknown> {
  id: number;
  name: Name;
  content: Content;
  timestamp: number;
}

/** A piece of audio. `bytes` is its decoded `audio`. */
export interface AudioEvent<Name extends string, Content> extends StreamEvent<Name, Content> {
  bytes: Uint8Array;
}

/** The events of a conversation. New versions of the server may send others. */
export type ConversationEvent =
  | StreamEvent<"start", string>
  | StreamEvent<"end_of_speech", EndOfSpeechContent>
  | StreamEvent<"user_input", string>
  | StreamEvent<"assistant_output_chunk", AssistantOutputChunkContent>
  | StreamEvent<"assistant_output_content_segment", AssistantOutputContentSegmentContent>
  | StreamEvent<"assistant_output_restart", AssistantOutputRestartContent>
  | StreamEvent<"assistant_output_audio_first_sentence_enabled", boolean>
  | AudioEvent<"assistant_output_audio_chunk", AssistantOutputAudioChunkContent>
  | StreamEvent<"assistant_output_audio", AssistantOutputAudioContent>
  | StreamEvent<"assistant_output_viseme", AssistantOutputVisemeContent>
  | StreamEvent<"end", ConversationEnd>;

/** The events of text to speech. New versions of the server may send others. */
export type SpeechEvent =
  | StreamEvent<"start", string>
  | AudioEvent<"audio_chunk", AudioChunkContent>
  | StreamEvent<"viseme", VisemeEventContent>
  | StreamEvent<"audio", AudioContent>
  | StreamEvent<"end", SpeechEnd>;
