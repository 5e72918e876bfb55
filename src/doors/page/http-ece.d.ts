/** Encrypted content encoding for HTTP (RFC 8188), with the keys of Web Push (RFC 8291). */
declare module 'http_ece' {
  import type { ECDH } from 'node:crypto'

  /** `dh`: the public key of who reads, base64url; `privateKey`: a key pair of this message alone. */
  export function encrypt(
    text: Buffer,
    options: { version: 'aes128gcm'; dh: string; privateKey: ECDH; salt: string; authSecret: string },
  ): Buffer

  /** What was encrypted for the owner of the key pair. */
  export function decrypt(text: Buffer, options: { version: 'aes128gcm'; privateKey: ECDH; authSecret: string }): Buffer
}
