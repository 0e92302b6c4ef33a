/** Where in the life of a round a point lies: a stage is what the outside world does next. */
export type Stage = 'start' | 'clicks' | 'orders' | 'again' | 'late' | 'billing' | 'payouts'

/** `sent`: its bytes have left, and no answer has come. `after`: the other side has answered, and the answer is not yet processed. */
export type Moment = 'before' | 'sent' | 'after'

/**
 * A transaction by what it does (patterns of plain statements; all must match); a call to the processor or a webhook endpoint; or a mail's
 * way to the mail server.
 */
export type Seam =
  | { commit: readonly string[]; without?: readonly string[] }
  | { call: string }
  | { mail: true }

export interface Point {
  /** In plain words: what is being done. */
  name: string
  stage: Stage
  seam: Seam
  /** The commit is acknowledged to a client: after a death before it, there must be no acknowledgment. */
  answered?: true
}

const adds = (table: string): string => `\\binsert (?:or \\w+ )?into ${table}\\b`
/** An update that sets `column` (and, where said so, not `other`), whatever its condition looks at. */
const sets = (table: string, column: string, other?: string): string => {
  const assignments = '(?:(?!\\bwhere\\b).)*'
  const not = other === undefined ? '' : `(?!${assignments}\\b${other} =)`
  return `\\bupdate ${table}(?: as \\w+)? set ${not}${assignments}\\b${column} =`
}

const ADD_EVENTS = adds('inbound_events')
const CLAIM_EVENTS = sets('inbound_events', 'lease_token', 'state')
const SETTLE_EVENT = sets('inbound_events', 'state')
const ADD_SALES = adds('sales')
const QUEUE_CALL = adds('processor_attempts')
const TAKE_UP_CALL = sets('processor_attempts', 'tries', 'state')
const SETTLE_CALL = sets('processor_attempts', 'state')
const POSTPONE_CALL = sets('processor_attempts', 'next_try_at', 'state')
const MOVE_CYCLE = sets('billing_cycles', 'state')
const RECORD_INVOICE = sets('billing_cycles', 'processor_invoice_id')
const RELEASE_SHARES = sets('billing_cycle_shares', 'released_at')
const MOVE_PAYOUT = sets('payouts', 'state')
const WRITE_JOURNAL = adds('ledger_entries')
const DISTRIBUTE = sets('outbox_events', 'distributed_at')
const CLAIM_WEBHOOKS = sets('webhook_deliveries', 'lease_token', 'state')
const SETTLE_WEBHOOKS = sets('webhook_deliveries', 'state')
const CLAIM_MAILS = sets('mails', 'lease_token', 'state')
const SETTLE_MAIL = sets('mails', 'state')

const commit = (stage: Stage, name: string, statements: string[], without: string[] = []): Point => ({
  name,
  stage,
  seam: { commit: statements, without },
})
const call = (
  stage: Stage,
  name: string,
  what: `${'GET' | 'POST'} /${'invoices' | 'payouts'}` | 'POST /hooks',
): Point => ({ name, stage, seam: { call: what } })

const answered = (point: Point): Point => ({ ...point, answered: true })

/** The places that are proved: at each a process is killed, and must leave no half thing behind. */
export const POINTS: readonly Point[] = [
  commit('clicks', 'visits are added to the counts', [adds('click_counts')]),
  commit('start', 'a scheduled run is noted as begun', [adds('schedule_runs')]),
  commit('start', 'a scheduled run is noted as done', [sets('schedule_runs', 'finished_at')]),
  answered(commit('clicks', 'a batch of clicks is written', [adds('clicks')])),
  answered(commit('orders', 'a batch of orders is taken into the inbox', [ADD_EVENTS])),
  commit('orders', 'orders become sales', [ADD_SALES, WRITE_JOURNAL]),
  commit('orders', 'events are given to their channels', [DISTRIBUTE, adds('webhook_deliveries')]),
  commit('orders', 'webhooks are claimed', [CLAIM_WEBHOOKS]),
  call('orders', 'a webhook is sent', 'POST /hooks'),
  commit('orders', 'the outcome of webhooks is written', [SETTLE_WEBHOOKS]),
  commit('again', 'an order that was known is settled', [SETTLE_EVENT], [ADD_SALES]),
  commit('late', 'a late order closes its cycle', [ADD_SALES, QUEUE_CALL, MOVE_CYCLE]),
  call('late', 'the invoice is asked for', 'POST /invoices'),
  commit('late', 'the payment is applied and shares are released', [RELEASE_SHARES, WRITE_JOURNAL]),
  call('late', 'the payout is asked for', 'POST /payouts'),
  commit('late', 'events become mails', [DISTRIBUTE, adds('mails')]),
  commit('late', 'mails are claimed', [CLAIM_MAILS]),
  { name: 'a mail is handed over', stage: 'late', seam: { mail: true } },
  commit('late', 'the outcome of a mail is written', [SETTLE_MAIL]),
  commit('billing', 'a billing cycle is closed', [QUEUE_CALL, MOVE_CYCLE], [ADD_SALES]),
  commit('billing', 'a call to the processor is taken up', [TAKE_UP_CALL]),
  commit('billing', 'a call without an answer is put off', [POSTPONE_CALL]),
  call('billing', 'the invoice is looked up', 'GET /invoices'),
  commit('billing', "the invoice's id is recorded", [SETTLE_CALL, RECORD_INVOICE]),
  commit('payouts', 'a payout is made', [adds('payouts'), QUEUE_CALL]),
  call('payouts', 'the payout is looked up', 'GET /payouts'),
  commit('payouts', "the payout's id is recorded", [MOVE_PAYOUT, SETTLE_CALL]),
  answered(commit('payouts', "the processor's word is taken into the inbox", [ADD_EVENTS])),
  commit('payouts', "the processor's word is claimed from the inbox", [CLAIM_EVENTS]),
  commit('payouts', 'the payout is settled', [MOVE_PAYOUT, WRITE_JOURNAL], [SETTLE_CALL]),
]

export interface Target {
  point: Point
  moment: Moment
}

/**
 * SQLite answers a commit in the same breath, so nothing lies between its sending and its answer. On PostgreSQL a death in between
 * ends as one of the other two, whichever the server made of it: only a `thorough` proof goes through them as well.
 */
export function momentsOf({ seam }: Point, dialect: 'sqlite' | 'postgresql', thorough: boolean): Moment[] {
  const between = !('commit' in seam) || (dialect === 'postgresql' && thorough)
  return between ? ['before', 'sent', 'after'] : ['before', 'after']
}

export function describe({ point, moment }: Target): string {
  return `${moment === 'sent' ? 'in the middle of' : moment}: ${point.name}`
}

/** Whether a transaction with these statements is the one that a point means. */
export function isCommitOf(seam: Seam, statements: readonly string[]): boolean {
  if (!('commit' in seam)) return false
  const has = (pattern: string) => statements.some((statement) => new RegExp(pattern).test(plain(statement)))
  return seam.commit.every(has) && !(seam.without ?? []).some(has)
}

/** Follows what one connection says. */
export class Transactions {
  /** Of the transaction that is under way. */
  #statements: string[] | null = null

  /** The statements of the transaction that `sql` commits; a statement outside one commits itself. `null` when nothing is committed. */
  endedBy(sql: string): readonly string[] | null {
    const statements = this.#statements
    if (sql === 'begin' || sql === 'begin immediate') this.#statements = []
    else if (sql === 'commit' || sql === 'rollback') this.#statements = null
    else if (statements === null) return [sql]
    else statements.push(sql)
    return sql === 'commit' ? statements : null
  }
}

/** A statement however it was written: without quotes, in small letters, with single blanks. */
function plain(statement: string): string {
  return statement.replaceAll('"', '').replace(/\s+/g, ' ').trim().toLowerCase()
}
