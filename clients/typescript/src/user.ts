// What can be called for one user, by the user's client as well as by the app's server.

import type {
  AssetList,
  AssetView,
  ConversationList,
  History,
  HistoryData,
  IpLocationReply,
  Offers,
  PronunciationReply,
  UserReply,
  UserView,
} from "./api.js";
import { UserAccount } from "./areas/account.js";
import { Images } from "./areas/images.js";
import { Leaderboards } from "./areas/leaderboards.js";
import { Mail } from "./areas/mail.js";
import { Predictions } from "./areas/predictions.js";
import { get, send } from "./http/calls.js";
import type { Caller } from "./http/transport.js";
import { segment } from "./http/urls.js";
import { assess, type AssessOptions } from "./streams/assessment.js";
import type { Pieces } from "./streams/input.js";
import { Speech, type SpeakOptions } from "./streams/speech.js";
import { Turn, type ConverseOptions, type ReadOptions } from "./streams/turn.js";

const CONVERSATION = "/bp/ai/conversation";

export interface HistoryOptions {
  /** The `record_id` of the newest record to return. By default, the last one. */
  newest?: number | undefined;
  /** At most this many records: 1 to 100, by default 10. */
  size?: number | undefined;
  /** Only this record. */
  recordId?: number | undefined;
}

export class User {
  readonly account: UserAccount;
  readonly leaderboards: Leaderboards;
  readonly mail: Mail;
  readonly predictions: Predictions;
  readonly images: Images;

  constructor(private readonly caller: Caller) {
    this.account = new UserAccount(caller);
    this.leaderboards = new Leaderboards(caller);
    this.mail = new Mail(caller);
    this.predictions = new Predictions(caller);
    this.images = new Images(caller);
  }

  /** Return a turn of a conversation. It is sent when its iteration begins. */
  converse(options: ConverseOptions): Turn {
    return new Turn(this.caller, options, options);
  }

  /**
   * Return a turn whose stream has begun before, such as in a page that was reloaded. All its events are read again.
   *
   * A stream can be read for two minutes after its end. Later, the iteration throws a `ParleyError` with the status
   * 404, and only the history has the turn.
   */
  resume(streamId: string, options: ReadOptions = {}): Turn {
    return new Turn(this.caller, streamId, options);
  }

  /** Return a text as speech. It is sent when its iteration begins. */
  speak(text: string, options: SpeakOptions): Speech {
    return new Speech(this.caller, text, options);
  }

  /**
   * Assess the pronunciation of a text that is read aloud.
   *
   * `audio` is 16 kHz mono 16-bit PCM, raw or as WAV, in pieces of any size. It is sent while it is recorded.
   */
  assess(audio: Pieces<Uint8Array>, options: AssessOptions): Promise<PronunciationReply> {
    return assess(this.caller, audio, options);
  }

  /** Return a conversation with the records from `newest` back, newest first. */
  async history(
    conversationId: string,
    { newest = -1, size = 10, recordId }: HistoryOptions = {},
  ): Promise<HistoryData> {
    const query = { conversation_id: conversationId, from: newest, size, record_id: recordId };
    return (await get<History>(this.caller, `${CONVERSATION}/query`, query)).data;
  }

  /** Return the user's conversations, newest first. `before` is the `next` of the page before. */
  conversations({
    before,
    size,
  }: { before?: string | undefined; size?: number | undefined } = {}): Promise<ConversationList> {
    return get(this.caller, "/bp/ai/conversations", { before, size });
  }

  async deleteConversation(conversationId: string): Promise<void> {
    await send(this.caller, "DELETE", `${CONVERSATION}/${segment(conversationId)}`);
  }

  /** Return the strategies that the user may choose. */
  offers(): Promise<Offers> {
    return get(this.caller, "/bp/ai/offers");
  }

  /** Return the user, with the bound identities. */
  async user(): Promise<UserView> {
    return (await get<UserReply>(this.caller, "/bp/user/me")).user;
  }

  /** Return what the user owns: purchases, subscriptions, rewards. */
  async assets(): Promise<AssetView[]> {
    return (await get<AssetList>(this.caller, "/bp/asset")).assets;
  }

  /** Return where the address of this client is. */
  ipLocation(): Promise<IpLocationReply> {
    return get(this.caller, "/bp/iplocation/ipv4");
  }
}
