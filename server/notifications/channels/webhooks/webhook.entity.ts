import { defineEntity } from '@mikro-orm/core'
import {
  count,
  enumText,
  epochMs,
  id,
  json,
  oneOf,
  refersTo,
  rowDigest,
  text,
} from '../../../platform/database/columns.ts'
import { User } from '../../../users/user.entity.ts'
import { OutboxEvent } from '../../outbox-event.entity.ts'

const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Why an endpoint gets nothing: its owner or an operator disabled it, it answered 410, or it failed for days. */
const DISABLED_REASONS = ['owner', 'operator', 'gone', 'failing'] as const
export type DisabledReason = (typeof DISABLED_REASONS)[number]

/** An address of an account's own system that events are sent to. */
export const WebhookEndpoint = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  properties: {
    id: id().primary(),
    account_id: () => refersTo(User, 'account_id'),
    url: text(),
    description: text(),
    /** The types of events, as a JSON array. */
    events: json(),
    disabled_at: epochMs().strictNullable(),
    disabled_reason: enumText<DisabledReason>().strictNullable(),
    /** Since when every attempt has failed; `null` after a success. */
    failing_since: epochMs().strictNullable(),
    created_at: epochMs(),
    updated_at: epochMs(),
    /** Set when the owner removes it; the row stays for its deliveries. */
    removed_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  indexes: [
    { name: 'webhook_endpoints_account', properties: ['account_id', 'id'], where: 'removed_at is null' },
  ],
  checks: [oneOf('webhook_endpoints', 'disabled_reason', DISABLED_REASONS)],
})

/** The secrets of an endpoint: the present one, and for a day after a rotation the former one. */
export const WebhookSecret = defineEntity({
  name: 'WebhookSecret',
  tableName: 'webhook_secrets',
  properties: {
    id: id().primary(),
    endpoint_id: () => refersTo(WebhookEndpoint, 'endpoint_id'),
    secret_encrypted: text(),
    /** `null` for the present secret. */
    valid_until: epochMs().strictNullable(),
    created_at: epochMs(),
  },
  indexes: [{ name: 'webhook_secrets_endpoint', properties: ['endpoint_id'] }],
})

/** One event for one endpoint, with the outcomes of its attempts. */
export const WebhookDelivery = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    id: id().primary(),
    endpoint_id: () => refersTo(WebhookEndpoint, 'endpoint_id'),
    event_id: () => refersTo(OutboxEvent, 'event_id'),
    /** Subject and sequence of the event: a delivery waits for earlier ones about its subject. */
    subject_id: id(),
    sequence: count(),
    /** Keyed digest of what the row causes. */
    row_digest: text(),
    state: enumText<DeliveryState>(),
    /** Attempts since it was created or last retried by hand. */
    attempts: count(),
    due_at: epochMs(),
    lease_until: epochMs(),
    lease_token: text().strictNullable(),
    /** Of the last attempt: when it ended, the HTTP status, the start of the response, and what went wrong. */
    attempted_at: epochMs().strictNullable(),
    response_status: count().strictNullable(),
    response_body: text().strictNullable(),
    error: text().strictNullable(),
    /** The last attempts, oldest first: `DeliveryAttempt[]`. `null` before the first. */
    attempt_log: json().strictNullable(),
    created_at: epochMs(),
    finished_at: epochMs().strictNullable(),
  },
  indexes: [
    { name: 'webhook_deliveries_due', properties: ['due_at', 'id'], where: "state = 'pending'" },
    {
      name: 'webhook_deliveries_order',
      properties: ['endpoint_id', 'subject_id', 'sequence'],
      where: "state = 'pending'",
    },
    { name: 'webhook_deliveries_endpoint', properties: ['endpoint_id', 'id'] },
    { name: 'webhook_deliveries_event', properties: ['event_id'] },
  ],
  checks: [oneOf('webhook_deliveries', 'state', DELIVERY_STATES)],
})
