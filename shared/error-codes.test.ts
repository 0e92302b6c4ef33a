import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ERROR_STATUS } from './error-codes.ts'

test('each code has the status that the wire contract gives it, and there is no other code', () => {
  assert.equal(ERROR_STATUS, {
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
  })
})

test.run()
