// The microphone, playback and hands-free conversation, for browsers.

export { MicrophoneFault, type MicrophoneFaultKind } from "./faults.js";
export { HandsFree, type HandsFreeOptions } from "./hands_free.js";
export { HoldToTalk } from "./hold_to_talk.js";
export { Microphone, type MicrophoneOptions, type RecordOptions, type SampleListener } from "./microphone.js";
export { Player, type Gap, type PlayerOptions, type PlayerState } from "./player.js";
export { type Recording, type RecordingEnd } from "./recording.js";
export { Utterances, type UtteranceChange, type UtterancesOptions } from "./utterances.js";
export { VoiceChat, type VoiceChatOptions, type VoiceState } from "./voice_chat.js";
export { SileroVoiceDetector, type VoiceDetector } from "./voice_detector.js";
