// The timeline of an imagined turn, which shows what will be in the panel before there is one.

export const EXAMPLE = [
  { kind: "recording", title: "Your speech", from: 0, to: 620 },
  { kind: "stt", title: "Recognition", from: 620, to: 880 },
  { kind: "failed", title: "Model", from: 880, to: 1_050, note: "a strategy failed" },
  { kind: "model", title: "First word", from: 1_050, to: 1_420 },
  { kind: "answer", title: "Answer", from: 1_420, to: 2_300 },
  { kind: "voice", title: "First sound", from: 1_600, to: 1_840 },
  { kind: "audio", title: "Audio", from: 1_840, to: 2_700 },
];
