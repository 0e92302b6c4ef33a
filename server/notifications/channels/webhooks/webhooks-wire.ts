import type {
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
} from '../../../../shared/schemas/webhooks.ts'
import { isoTime } from '../../../platform/clock.ts'
import type { ShownEndpoint } from './endpoints.service.ts'
import type { DeliveryRow, ShownDelivery } from './webhooks.store.ts'

export function wireEndpoint({ formerSecretUntil, ...row }: ShownEndpoint): WebhookEndpoint {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    events: JSON.parse(row.events),
    enabled: row.disabled_at === null,
    disabled_reason: row.disabled_reason,
    failing_since: isoTime(row.failing_since),
    former_secret_valid_until: isoTime(formerSecretUntil),
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
  }
}

export function wireEndpointWithSecret(shown: ShownEndpoint & { secret: string }): WebhookEndpointWithSecret {
  return { ...wireEndpoint(shown), secret: shown.secret }
}

export function wireDelivery(row: ShownDelivery): WebhookDelivery {
  return {
    id: row.id,
    endpoint_id: row.endpoint_id,
    event_id: row.event_id,
    event_type: row.event_type,
    state: row.state,
    attempts: row.attempts,
    next_attempt_at: row.state === 'pending' ? isoTime(row.due_at) : null,
    last_attempt_at: isoTime(row.attempted_at),
    response_status: row.response_status,
    response_body: row.response_body,
    error: row.error,
    attempt_log: attemptsOf(row).map(({ at, status, error, durationMs }) => ({
      at: isoTime(at),
      response_status: status,
      error,
      duration_ms: durationMs,
    })),
    created_at: isoTime(row.created_at),
    finished_at: isoTime(row.finished_at),
  }
}

/** How many attempts of a delivery are kept: all of a schedule. */
const ATTEMPTS_KEPT = 10

/** One attempt at a delivery. */
interface DeliveryAttempt {
  /** When it ended, epoch ms. */
  at: number
  /** The HTTP status; `null` without a response. */
  status: number | null
  /** What went wrong, for people; `null` for a 2xx. */
  error: string | null
  durationMs: number
}

/** The last attempts, oldest first. */
export function attemptsOf({ attempt_log: log }: Pick<DeliveryRow, 'attempt_log'>): DeliveryAttempt[] {
  return log === null ? [] : JSON.parse(log)
}

/** The delivery's log with one more attempt, as it is stored. */
export function withAttempt(delivery: Pick<DeliveryRow, 'attempt_log'>, attempt: DeliveryAttempt): string {
  return JSON.stringify([...attemptsOf(delivery), attempt].slice(-ATTEMPTS_KEPT))
}
