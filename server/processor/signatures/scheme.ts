/** Header names in lower case; a header that came several times is either joined with `, ` or absent. */
export type LowerCaseHeaders = Readonly<Record<string, string | undefined>>

export interface SignedRequest {
  headers: LowerCaseHeaders
  /** The bytes as they came: a re-serialised body has another MAC. */
  rawBody: Buffer
  /** Every secret that is valid at the moment; any of them may match (rotation). */
  secrets: readonly string[]
  /** Epoch milliseconds. */
  now: number
}

/**
 * `deliveryId` is the sender's id of the event, the same on each of its retries; null when the scheme or the
 * body carries none (then only the body itself can tell a redelivery). `signedAt` is epoch milliseconds, null
 * when the scheme signs no time. `reason` is for the log, not for the caller.
 */
export type SignatureVerdict =
  | { ok: true; deliveryId: string | null; signedAt: number | null }
  | { ok: false; reason: string }

export interface SigningInput {
  /** Becomes the event id where the scheme carries one in a header; schemes that read it from the body ignore it. */
  deliveryId: string
  rawBody: Buffer
  secret: string
  /** Epoch milliseconds. */
  now: number
}

export interface SignatureScheme {
  /** Lower-case names of headers without which no request can be validly signed. */
  requiredHeaders: readonly string[]
  /** Never throws, whatever the headers and the body are. */
  verify(input: SignedRequest): SignatureVerdict
  /** The headers that make `verify` accept the body. Throws on a secret that `secretProblem` names. */
  sign(input: SigningInput): Record<string, string>
  /** What is wrong with a configured secret, or null. Used to stop the start on a setting that makes no sense. */
  secretProblem(secret: string): string | null
}

export function refused(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
