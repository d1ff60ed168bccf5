// The timeline of an imagined turn, which shows what will be in the panel before there is one.

export const EXAMPLE = [
  { kind: "recording", title: "Upload", from: 0, to: 620 },
  { kind: "stt", title: "Recognition", from: 620, to: 880 },
  { kind: "model", title: "Model", from: 880, to: 1_420 },
  { kind: "answer", title: "Answer", from: 1_420, to: 2_300 },
  { kind: "voice", title: "Voice", from: 1_600, to: 1_840 },
  { kind: "audio", title: "Audio", from: 1_840, to: 2_700 },
];
