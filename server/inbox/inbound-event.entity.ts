import { defineEntity, p } from '@mikro-orm/core'
import { count, id, json, moment, oneOf, text, word } from '../platform/database/columns.ts'
import { EVENT_SOURCES, EVENT_STATES, type EventSource, type EventState } from './event-words.ts'

/** A signed event, on disk before its sender got 200, and what became of it. */
export const InboundEvent = defineEntity({
  name: 'InboundEvent',
  tableName: 'inbound_events',
  properties: {
    id: id().primary(),
    source: word<EventSource>(),
    /** The store's id for a store's events, `processor` for the processor's. Order is kept within a scope. */
    scope: text(),
    delivery_id: text(),
    /** Empty; the body's hash when this delivery id came before with another body. */
    conflict_hash: text(),
    /** SHA-256 of the raw body, hex. */
    body_hash: text(),
    topic: text().strictNullable(),
    received_at: moment(),
    /** When its sender says it was triggered, from an unsigned header: a hint only. */
    triggered_at: moment().strictNullable(),
    state: word<EventState>(),
    attempts: count(),
    next_attempt_at: moment(),
    /** Names the worker run that holds the event: what it writes counts only while this still stands. */
    lease_token: text().strictNullable(),
    lease_until: moment(),
    /** Why it was ignored or set aside, or what went wrong at the last try. */
    reason: text().strictNullable(),
    /** JSON: what it led to (sale, cycle or payout). */
    result: json().strictNullable(),
    finished_at: moment().strictNullable(),
    /** Of an order that was set aside as unreadable: its id and name, where those could be read. */
    order_id: text().strictNullable(),
    order_name: text().strictNullable(),
  },
  checks: [oneOf('inbound_events', 'source', EVENT_SOURCES), oneOf('inbound_events', 'state', EVENT_STATES)],
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

/** The raw body, apart from the event's state: marking an event done must not rewrite kilobytes. */
export const InboundBody = defineEntity({
  name: 'InboundBody',
  tableName: 'inbound_bodies',
  properties: {
    event: () => p.oneToOne(InboundEvent).owner().primary().deleteRule('restrict').updateRule('no action'),
    /** `utf8`, or `base64` where the bytes are no clean UTF-8 text. */
    encoding: word<'utf8' | 'base64'>(),
    body: text(),
  },
})
