// What the tokens need of Node's crypto module, so that the package needs no types of Node.

declare module "node:crypto" {
  interface PrivateKey {
    readonly asymmetricKeyType?: string;
  }
  export function createPrivateKey(pem: string): PrivateKey;
  export function sign(
    algorithm: string | null,
    data: Uint8Array,
    key: { key: PrivateKey; dsaEncoding?: "ieee-p1363" },
  ): Uint8Array;
}
