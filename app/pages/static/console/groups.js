// The groups of a form's fields, by the names of the fields. A field belongs to the first group whose names match.

const GROUPS = [
  ["model", /^(chat|model|models|versions|options|system_prompt|context_tokens|max_tokens|temperature)$/],
  ["account", new RegExp(`^(${[
    "enabled|account|accounts|mail_accounts|platform|provider|platforms|stream|stream_options|database|trusted_proxies|receiver",
    "url|.*_url|.*_urls|redirect_uri|host|port|tls|username|password|.*secrets?|.*_keys?|.*_id|audiences|issuers|bundle_ids|.*_hosts|key_roots|certificate_.*",
  ].join("|")})$`)],
  ["voice", /^(speech|recognition|voice|voices_at_once|speed|prompt|language_code|languages|audio_format|need_viseme|min_realtime_factor|sentence_characters|paragraph_delimiter)$/],
  ["content", /^(title|type|asset|quantity|period|tags|subject|text|html|from|reply_to|templates?|variables|color|brand_name)$/],
  ["money", /^(price|trial|walletpay|cardpay|currency|currencies)$/],
  ["limits", /(^(concurrency|waiting|breaker|per_minute|at_once|max_len|rates|limits|quota|share_quota|size)|_bytes|_characters|_per_[a-z]+)$/],
  ["times", /(^(waits|hedge_after_ms)|_s)$/],
  ["kept", /_days$/],
];
const FEW = 7;

/** Splits fields `[name, schema]` into groups `[id, fields]`. A short form is one group, whose id is empty. */
export function grouped(fields) {
  if (fields.length < FEW) return [["", fields]];
  const groups = new Map([...GROUPS.map(([id]) => [id, []]), ["other", []]]);
  for (const field of fields) groups.get(GROUPS.find(([, names]) => names.test(field[0]))?.[0] ?? "other").push(field);
  return [...groups].filter(([, members]) => members.length);
}
