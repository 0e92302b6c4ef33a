import { defineEntity } from '@mikro-orm/core'
import {
  count,
  enumText,
  epochMs,
  id,
  oneOf,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'

const ROLES = ['merchant', 'creator', 'admin'] as const

export const User = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: id().primary(),
    /** Trimmed and lower case. */
    email: text().unique(),
    password_hash: text(),
    role: enumText<(typeof ROLES)[number]>(),
    display_name: text(),
    suspended_at: epochMs().strictNullable(),
    created_at: epochMs(),
    /** When the owner of the e-mail address proved to have it. */
    email_verified_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('users', 'role', ROLES)],
  indexes: [{ name: 'users_suspended', properties: ['id'], where: 'suspended_at is not null' }],
})

export const Session = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    /** SHA-256 of the token, hex: the token itself is shown once and never kept. */
    token_hash: text().unique(),
    created_at: epochMs(),
    expires_at: epochMs(),
    /** Accurate to a minute; null until the first update after the log-in. */
    last_used_at: epochMs().nullable(),
    /** The network that logged in: a /24 or /48. */
    address_prefix: text().nullable(),
    /** The program that logged in, as it calls itself: shortened, printable ASCII. */
    agent: text().nullable(),
    /** Until when a step-up holds. */
    fresh_until: epochMs().nullable(),
    /** 1 if the session can only set up a second factor. */
    setup_only: count().default(0),
    row_digest: rowDigest(),
  },
  indexes: [{ name: 'sessions_user', properties: ['user_id'] }],
})

const API_KEY_SCOPES = ['read', 'write'] as const

/** A key with which a program calls in the name of its user, within a scope. */
export const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_keys',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    name: text(),
    scope: enumText<(typeof API_KEY_SCOPES)[number]>(),
    /** SHA-256 of the random part, hex: the key itself is shown once and never kept. */
    token_hash: text().unique(),
    last4: text(),
    created_at: epochMs(),
    expires_at: epochMs().strictNullable(),
    /** Accurate to a minute. */
    last_used_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('api_keys', 'scope', API_KEY_SCOPES)],
  indexes: [{ name: 'api_keys_user', properties: ['user_id'] }],
})

export const TOKEN_PURPOSES = ['verify_email', 'password_reset'] as const
export type TokenPurpose = (typeof TOKEN_PURPOSES)[number]

/** The valid link of an e-mail to an account. There is one for each purpose: a new one replaces it, and its use deletes it. */
export const AccountToken = defineEntity({
  name: 'AccountToken',
  tableName: 'account_tokens',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    purpose: enumText<TokenPurpose>().primary(),
    /** SHA-256 of the token, hex. */
    token_hash: text().unique(),
    created_at: epochMs(),
    expires_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('account_tokens', 'purpose', TOKEN_PURPOSES)],
})

/** A user's second factor; it counts once it is confirmed. */
export const SecondFactor = defineEntity({
  name: 'SecondFactor',
  tableName: 'second_factors',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    secret_encrypted: text(),
    created_at: epochMs(),
    confirmed_at: epochMs().strictNullable(),
    /** The last time step whose code was accepted; 0 before the first. */
    last_step: epochMs(),
    row_digest: rowDigest(),
  },
})

/** A recovery code that was not used yet. */
export const RecoveryCode = defineEntity({
  name: 'RecoveryCode',
  tableName: 'recovery_codes',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    /** SHA-256, hex: a code has 80 random bits and needs no slow hash. */
    code_hash: text().primary(),
    row_digest: rowDigest(),
  },
})

/** An address from which an account has logged in. */
export const LoginAddress = defineEntity({
  name: 'LoginAddress',
  tableName: 'login_addresses',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    /** A keyed hash of account and address, hex: the address itself is not kept. */
    address_hash: text().primary(),
    /** The last log-in. */
    used_at: epochMs(),
  },
})

/** Where a creator is paid. Rows are only added; the latest one whose `effective_at` has come is in force. */
export const PayoutDestination = defineEntity({
  name: 'PayoutDestination',
  tableName: 'payout_destinations',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    iban_encrypted: text(),
    /** Keyed hash, so that two users who share an IBAN can be found without decrypting any. */
    iban_fingerprint: text().index(),
    iban_last4: text(),
    account_title: text(),
    effective_at: epochMs(),
    created_at: epochMs(),
    row_digest: rowDigest(),
  },
  indexes: [{ name: 'payout_destinations_user', properties: ['user_id', 'effective_at'] }],
})

const BILLING_ACCOUNT_KINDS = ['iban', 'raast_id'] as const

/** The account that a merchant pays from, for processors that request payments. Rows are only added; the latest one counts. */
export const BillingAccount = defineEntity({
  name: 'BillingAccount',
  tableName: 'billing_accounts',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    kind: enumText<(typeof BILLING_ACCOUNT_KINDS)[number]>(),
    account_encrypted: text(),
    account_last4: text(),
    created_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('billing_accounts', 'kind', BILLING_ACCOUNT_KINDS)],
  indexes: [{ name: 'billing_accounts_user', properties: ['user_id', 'created_at'] }],
})
