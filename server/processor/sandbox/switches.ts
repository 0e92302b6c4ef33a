import { z } from 'zod'

const count = z.int().min(0).max(1_000_000)

/** How the sandbox misbehaves. A counter is the number of POSTs (or payouts) that it still affects. */
const fields = {
  /** Time from an accepted call until its money moves and its event is due, ms. */
  event_delay_ms: count.max(86_400_000),
  /** The next accepted payouts end as `payout.failed`. */
  fail_next_payouts: count,
  failure_reason: z.string().min(1).max(500),
  /** 422 without effect. Final: the same idempotency key gets it again. */
  refuse_next: count,
  /** 500 without effect. */
  error_next: count,
  /** 429 with `Retry-After: 1` without effect. */
  limit_next: count,
  /** Takes effect, but the connection breaks without an answer. */
  lose_next_answers: count,
  /** Takes effect, but the connection breaks in the middle of the answer. */
  garble_next_answers: count,
  /** The next calls take effect after `stall_ms`, even if the caller has gone. */
  stall_next: count,
  stall_ms: count.max(600_000),
  /** Each event is sent this many more times, with the same webhook-id. */
  duplicate_events: count.max(100),
  /** The order of events that are due together. `shuffled` depends only on `order_seed`. */
  event_order: z.enum(['as_made', 'reversed', 'shuffled']),
  order_seed: z.int().min(0).max(0xffffffff),
  /** The event is due immediately and is sent before the call is answered. */
  events_before_answer: z.boolean(),
  /** Money moves when it is due, but no event is sent until this is false again. */
  hold_events: z.boolean(),
  /** As `hold_events`, until this moment (epoch ms): a hold that ends even when the process that set it does not. */
  hold_events_until: z.int().min(0),
  /** Paisa added to the amount of confirming events. Applied when the call is accepted. */
  confirm_amount_delta: z.int().min(-1_000_000_000).max(1_000_000_000),
}

export const switchesSchema = z.strictObject(fields)
export const switchChangeSchema = switchesSchema.partial()
export type SandboxSwitches = z.infer<typeof switchesSchema>

export type SwitchCounter = Extract<keyof SandboxSwitches, `${string}_next` | `${string}_next_${string}`>

export const WELL_BEHAVED: SandboxSwitches = {
  event_delay_ms: 0,
  fail_next_payouts: 0,
  failure_reason: 'the account does not accept transfers',
  refuse_next: 0,
  error_next: 0,
  limit_next: 0,
  lose_next_answers: 0,
  garble_next_answers: 0,
  stall_next: 0,
  stall_ms: 1000,
  duplicate_events: 0,
  event_order: 'as_made',
  order_seed: 1,
  events_before_answer: false,
  hold_events: false,
  hold_events_until: 0,
  confirm_amount_delta: 0,
}
