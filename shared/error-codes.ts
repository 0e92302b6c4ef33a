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
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof ERROR_STATUS

/** What each code means to a client, what to do about it, and a `detail` that the service sends with it. */
export const ERROR_TEXTS: Record<ErrorCode, { meaning: string; next: string; example: string }> = {
  validation_failed: {
    meaning: 'A field is missing, unknown or out of bounds.',
    next: 'Correct the fields in `issues`.',
    example: 'commission_rate must be between 0.01 and 90.',
  },
  malformed_json: {
    meaning: 'The body is not valid JSON.',
    next: 'Send one JSON object in UTF-8.',
    example: 'The body is not valid JSON.',
  },
  unauthenticated: {
    meaning: 'The token is missing, wrong or expired.',
    next: 'Log in again and send the new token.',
    example: 'Log in and send the token as a bearer token.',
  },
  invalid_credentials: {
    meaning: 'The e-mail, the password or the code is wrong.',
    next: 'Ask for them again.',
    example: 'The e-mail or the password is wrong.',
  },
  second_factor_required: {
    meaning: 'The password is right, and the account has a second factor.',
    next: 'Ask for a code, and send it as `code` with the same password.',
    example: 'Send the current code of your authenticator app, or a recovery code, as "code".',
  },
  email_not_verified: {
    meaning: 'The account must verify its e-mail address before this call.',
    next: 'Ask the user to open the link in the e-mail; `POST /auth/verify-email/resend` mails it again.',
    example: 'Verify your e-mail address first: open the link in the e-mail, or have it sent again.',
  },
  invalid_signature: {
    meaning: 'A webhook has no valid signature.',
    next: "Sign the raw body with the store's or the processor's secret.",
    example: 'Invalid webhook signature.',
  },
  forbidden: {
    meaning: 'The role of the account may not do this.',
    next: 'Use an account with a role that the operation names.',
    example: 'The role creator may not do this.',
  },
  account_suspended: {
    meaning: 'An admin suspended the account.',
    next: 'Contact the operator.',
    example: 'This account is suspended.',
  },
  step_up_required: {
    meaning: 'The account has a second factor, and this change needs it.',
    next: 'Call `POST /auth/step-up`, then repeat the call within 10 minutes.',
    example: 'Confirm with POST /auth/step-up first: password and code.',
  },
  not_found: {
    meaning: 'It does not exist, or belongs to another account.',
    next: 'Check the id.',
    example: 'Not found.',
  },
  gone: {
    meaning:
      'It was there and does not come back: the link of a suspended merchant, or the file of an export that has expired.',
    next: 'For a file, start the export again.',
    example: 'This affiliate link is no longer active.',
  },
  method_not_allowed: {
    meaning: 'The path exists, but not with this method.',
    next: 'Use a method of the `Allow` header.',
    example: 'This path does not support PUT; use GET, HEAD, POST.',
  },
  conflict: {
    meaning: 'The present state does not allow the change.',
    next: 'Read the resource again, then decide.',
    example: 'An ended offer cannot be edited.',
  },
  illegal_transition: {
    meaning: 'The offer cannot change from its status to this one.',
    next: 'Choose a status that `detail` names.',
    example: 'An offer that is ended cannot become live; it cannot change.',
  },
  already_decided: {
    meaning: 'Another decision was made before.',
    next: 'Read it; it stays.',
    example: 'This application is already approved.',
  },
  already_applied: {
    meaning: 'The creator has applied to this offer before.',
    next: 'Read it with `GET /applications`.',
    example: 'Your application to this offer is already pending.',
  },
  offer_not_live: {
    meaning: 'The offer is not open for applications.',
    next: 'Choose a live offer.',
    example: 'The offer is paused and takes no applications.',
  },
  vetting_required: {
    meaning: "The offer's commission rate needs an admin's approval.",
    next: 'Wait for the approval, or lower the rate.',
    example: 'This commission rate needs an approved vetting before the offer goes live.',
  },
  email_taken: {
    meaning: 'There is an account with this e-mail.',
    next: 'Log in, or use another e-mail.',
    example: 'There is an account with this e-mail already.',
  },
  store_taken: {
    meaning: 'The merchant has connected this store before.',
    next: 'Change its secret with `PATCH /stores/{id}`.',
    example: 'You have connected this shop domain already.',
  },
  secret_taken: {
    meaning: 'The webhook secret belongs to another store.',
    next: "Use this store's own secret.",
    example: 'This webhook secret belongs to another store. Each store needs its own.',
  },
  coupon_taken: {
    meaning: "Another of the merchant's links has the coupon code.",
    next: 'Choose another code, or take it away from the other link first.',
    example: "Another of the merchant's links has the coupon code SANA10.",
  },
  quota_exceeded: {
    meaning: 'The account has as many of these as it may.',
    next: 'Finish or remove one, or ask the operator.',
    example: 'At most 10 stores per account. Remove one before you connect another.',
  },
  payload_too_large: {
    meaning: 'The body is too large.',
    next: 'Send at most 256 KiB; a webhook, 2 MiB.',
    example: 'The body is too large.',
  },
  unsupported_media_type: {
    meaning: 'The body has another content type than JSON.',
    next: 'Send `Content-Type: application/json`.',
    example: 'The body must be application/json in UTF-8.',
  },
  rate_limited: {
    meaning: 'Too many calls in a minute.',
    next: 'Wait as many seconds as `Retry-After` says.',
    example: 'At most 300 calls per minute from one account. Try again in 41 seconds.',
  },
  internal: {
    meaning: 'An unexpected error in the service.',
    next: 'Report the `request_id`.',
    example: 'Internal error. Report it with the request_id.',
  },
  unavailable: {
    meaning: 'The database is not available, or the service has too much to do.',
    next: 'Retry after `Retry-After` seconds.',
    example: 'The database is not available. Try again shortly.',
  },
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
