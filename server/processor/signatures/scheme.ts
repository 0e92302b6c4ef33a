/** Headers by lower-case name. A header that came several times is joined with `, ` or absent. */
export type LowerCaseHeaders = Readonly<Record<string, string | undefined>>

export interface SignedRequest {
  headers: LowerCaseHeaders
  /** The bytes as received: a reserialized body has another MAC. */
  rawBody: Buffer
  /** All valid secrets. Any of them may match, for rotation. */
  secrets: readonly string[]
  /** Epoch ms. */
  now: number
}

/**
 * `deliveryId` is the sender's id of the event, the same on each retry; `null` when the scheme or the body has none, and then only the body
 * identifies a redelivery. `signedAt` in epoch ms is `null` when the scheme signs no time. `reason` is for the log, not for the caller.
 */
export type SignatureVerdict =
  | { ok: true; deliveryId: string | null; signedAt: number | null }
  | { ok: false; reason: string }

export interface SigningInput {
  /** The event id, for schemes with a header for it. */
  deliveryId: string
  rawBody: Buffer
  secret: string
  /** Epoch ms. */
  now: number
}

export interface SignatureScheme {
  /** Lower-case names of the headers that every validly signed request has. */
  requiredHeaders: readonly string[]
  /** Never throws. */
  verify(input: SignedRequest): SignatureVerdict
  /** The headers with which `verify` accepts the body. Throws for a secret with a `secretProblem`. */
  sign(input: SigningInput): Record<string, string>
  /** What is wrong with a configured secret, or `null`. */
  secretProblem(secret: string): string | null
}

export function refused(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
