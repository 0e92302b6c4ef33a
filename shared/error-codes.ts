/** Every code that a client can meet, with its HTTP status. This table is the only place that maps one to the other. */
export const ERROR_STATUS = {
  validation_failed: 400,
  malformed_json: 400,
  unauthenticated: 401,
  invalid_credentials: 401,
  second_factor_required: 401,
  invalid_signature: 401,
  forbidden: 403,
  account_suspended: 403,
  email_not_verified: 403,
  step_up_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  illegal_transition: 409,
  already_decided: 409,
  already_applied: 409,
  offer_not_live: 409,
  vetting_required: 409,
  email_taken: 409,
  store_taken: 409,
  secret_taken: 409,
  coupon_taken: 409,
  quota_exceeded: 409,
  idempotency_mismatch: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof ERROR_STATUS

/** A `detail` that the service sends with each code. */
export const ERROR_EXAMPLES: Record<ErrorCode, string> = {
  validation_failed: 'commission_rate must be between 0.01 and 90.',
  malformed_json: 'The body is not valid JSON.',
  unauthenticated: 'Log in and send the token as a bearer token.',
  invalid_credentials: 'The e-mail or the password is wrong.',
  second_factor_required: 'Send the current code of your authenticator app, or a recovery code, as "code".',
  invalid_signature: 'Invalid webhook signature.',
  forbidden: 'The role creator may not do this.',
  account_suspended: 'This account is suspended.',
  email_not_verified: 'Verify your e-mail address first: open the link in the e-mail, or have it sent again.',
  step_up_required: 'Confirm with POST /auth/step-up first: password and code.',
  not_found: 'Not found.',
  method_not_allowed: 'This path does not support PUT; use GET, HEAD, POST.',
  conflict: 'An ended offer cannot be edited.',
  illegal_transition: 'An offer that is ended cannot become live; it cannot change.',
  already_decided: 'This application is already approved.',
  already_applied: 'Your application to this offer is already pending.',
  offer_not_live: 'The offer is paused and takes no applications.',
  vetting_required: 'This commission rate needs an approved vetting before the offer goes live.',
  email_taken: 'There is an account with this e-mail already.',
  store_taken: 'You have connected this shop domain already.',
  secret_taken: 'This webhook secret belongs to another store. Each store needs its own.',
  coupon_taken: "Another of the merchant's links has the coupon code SANA10.",
  quota_exceeded: 'At most 10 stores per account. Remove one before you connect another.',
  idempotency_mismatch: 'Another call was made with this Idempotency-Key. Use a new key for each call.',
  gone: 'This affiliate link is no longer active.',
  payload_too_large: 'The body is too large.',
  unsupported_media_type: 'The body must be application/json in UTF-8.',
  rate_limited: 'At most 300 calls per minute from one account. Try again in 41 seconds.',
  internal: 'Internal error. Report it with the request_id.',
  unavailable: 'The database is not available. Try again shortly.',
}

/** What the service says about a failed call (RFC 9457). */
export interface Problem {
  /** Always `about:blank`: `code` distinguishes problems. */
  type: string
  /** The name of the HTTP status. */
  title: string
  status: number
  /** For people. */
  detail: string
  /** For programs; stable. */
  code: ErrorCode
  /** Identifies the request in the service's log. */
  request_id: string
  /** The invalid fields, for `validation_failed`. */
  issues?: { path: string; message: string }[] | undefined
}
