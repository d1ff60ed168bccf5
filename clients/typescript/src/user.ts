// What can be done for one user: by a client with the user's session, and by an app server with a server token.

import type { AssetList, History, IpLocationReply, PronunciationReply, UserReply, UserView } from "./api.js";
import { Conversations, type HistoryOptions } from "./areas/conversations.js";
import { Images } from "./areas/images.js";
import { Leaderboards } from "./areas/leaderboards.js";
import { Mail } from "./areas/mail.js";
import { Predictions } from "./areas/predictions.js";
import { get } from "./http/calls.js";
import type { Caller } from "./http/transport.js";
import { assess, type AssessOptions } from "./streams/assessment.js";
import { Speech, type SpeakOptions } from "./streams/speech.js";
import { Turn, type ConverseOptions } from "./streams/turn.js";

export class User {
  readonly conversations: Conversations;
  readonly leaderboards: Leaderboards;
  readonly mail: Mail;
  readonly predictions: Predictions;
  readonly images: Images;

  constructor(private readonly caller: Caller) {
    this.conversations = new Conversations(caller);
    this.leaderboards = new Leaderboards(caller);
    this.mail = new Mail(caller);
    this.predictions = new Predictions(caller);
    this.images = new Images(caller);
  }

  /** The user, with linked identities. */
  async user(): Promise<UserView> {
    return (await get<UserReply>(this.caller, "/bp/user/me")).user;
  }

  /** Say something by text or voice, and get the answer. */
  converse(options: ConverseOptions): Turn {
    return new Turn(this.caller, options);
  }

  /** Speak a text. */
  speak(options: SpeakOptions): Speech {
    return new Speech(this.caller, options);
  }

  /** Assess the pronunciation of a text that the user reads aloud. */
  assess(options: AssessOptions): Promise<PronunciationReply> {
    return assess(this.caller, options);
  }

  /** The records of a conversation, newest first. */
  history(options: HistoryOptions): Promise<History> {
    return this.conversations.history(options);
  }

  /** What the user owns. */
  assets(): Promise<AssetList> {
    return get(this.caller, "/bp/asset");
  }

  /** Where the IP address of this client is. */
  location(): Promise<IpLocationReply> {
    return get(this.caller, "/bp/iplocation/ipv4");
  }
}
