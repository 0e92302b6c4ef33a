import { defineEntity, p } from '@mikro-orm/core'
import { count, enumText, epochMs, id, json, oneOf, text } from '../platform/database/columns.ts'
import {
  EVENT_SOURCES,
  EVENT_STATES,
  type EventSource,
  type EventState,
  SET_ASIDE_CODES,
  type SetAsideCode,
} from './event-states.ts'

/** A signed event, on disk before its sender got 200, and its outcome. */
export const InboundEvent = defineEntity({
  name: 'InboundEvent',
  tableName: 'inbound_events',
  properties: {
    id: id().primary(),
    source: enumText<EventSource>(),
    /** The store's id, or `processor`. Events of one scope are applied in order. */
    scope: text(),
    delivery_id: text(),
    /** Empty; the body's hash when this delivery id came before with another body. */
    conflict_hash: text(),
    /** SHA-256 of the raw body, hex. */
    body_hash: text(),
    topic: text().strictNullable(),
    received_at: epochMs(),
    /** When it was triggered, from an unsigned header: a hint only. */
    triggered_at: epochMs().strictNullable(),
    /** Keyed digest of all of the above: intake sealed what it verified. */
    row_digest: text(),
    state: enumText<EventState>(),
    attempts: count(),
    next_attempt_at: epochMs(),
    /** Fencing token of the claim that holds the event. */
    lease_token: text().strictNullable(),
    lease_until: epochMs(),
    /** Why it was ignored or set aside, or why the last attempt failed. */
    reason: text().strictNullable(),
    /** The cause of an event that was set aside, where code depends on it. */
    reason_code: enumText<SetAsideCode>().strictNullable(),
    /** JSON: the sale, cycle or payout that it created or changed. */
    result: json().strictNullable(),
    finished_at: epochMs().strictNullable(),
    /**
     * By which an event is found later: of an order that was set aside, if they could be read; of one that was ignored although the store took
     * the order back; of one that a pending order comes from.
     */
    order_id: text().strictNullable(),
    order_name: text().strictNullable(),
  },
  checks: [
    oneOf('inbound_events', 'source', EVENT_SOURCES),
    oneOf('inbound_events', 'state', EVENT_STATES),
    oneOf('inbound_events', 'reason_code', SET_ASIDE_CODES),
  ],
  uniques: [{ name: 'inbound_events_delivery', properties: ['scope', 'delivery_id', 'conflict_hash'] }],
  indexes: [
    {
      name: 'inbound_events_pending',
      properties: ['source', 'next_attempt_at', 'id'],
      where: "state = 'pending'",
    },
    { name: 'inbound_events_set_aside', properties: ['source', 'id'], where: "state = 'set_aside'" },
    {
      name: 'inbound_events_set_aside_of_scope',
      properties: ['scope', 'received_at'],
      where: "state = 'set_aside'",
    },
    { name: 'inbound_events_order_id', properties: ['order_id'], where: 'order_id is not null' },
    { name: 'inbound_events_order_name', properties: ['order_name'], where: 'order_name is not null' },
    { name: 'inbound_events_leased', properties: ['scope'], where: 'lease_token is not null' },
  ],
})

/** The raw body, apart from the event's state, so that marking an event done does not rewrite kilobytes. */
export const InboundBody = defineEntity({
  name: 'InboundBody',
  tableName: 'inbound_bodies',
  properties: {
    event: () => p.oneToOne(InboundEvent).owner().primary().deleteRule('restrict').updateRule('no action'),
    /** `base64` for bytes that are not valid UTF-8 or contain a NUL. */
    encoding: enumText<'utf8' | 'base64'>(),
    body: text(),
  },
})

/**
 * A delivery that the command line signed in the name of a store or the processor, recorded before it is sent. An event with the same
 * scope, delivery id and body hash has the origin `operator`. Rows are only added.
 */
export const OperatorDelivery = defineEntity({
  name: 'OperatorDelivery',
  tableName: 'operator_deliveries',
  properties: {
    scope: text().primary(),
    delivery_id: text().primary(),
    /** SHA-256 of the raw body, hex. */
    body_hash: text().primary(),
    created_at: epochMs(),
  },
})
