import type { Selectable } from 'kysely'
import { DAY_MS } from '../../../shared/durations.ts'
import { ERROR_STATUS } from '../../../shared/error-codes.ts'
import { type Binding, IntegrityError, sha256, UnknownKeyError } from '../crypto/vault.ts'
import { type Tx, unitOfWork, WriteConflict } from '../database/database.ts'
import type { Schema } from '../database/schema.ts'
import type { Platform } from '../platform.ts'
import { refusalOf } from './problem.ts'
import { invalidFields, Refusal } from './refusal.ts'

/** How long an answer is kept. */
const KEPT_MS = DAY_MS
export const IDEMPOTENCY_HEADER = 'Idempotency-Key'
const KEY = /^[\x20-\x7e]{1,64}$/
/** Inputs are nested less deeply. */
const MAX_DEPTH = 10

type Row = Selectable<Schema['idempotency_keys']>

/** A call with an `Idempotency-Key`. */
interface KeyedCall {
  userId: string
  /** As the client sent it. */
  key: string
  procedure: string
  input: unknown
}

/** What a procedure's middleware answers. */
type Outcome = { ok: true; data: unknown } | { ok: false; error: Error }

/**
 * Runs a call once: within a day, the same account's call with the same key gets the answer of the first. What `run` changes and its answer
 * commit together, so a crash leaves both or none; a second call at the same time waits for the first. Refusals and errors are not kept.
 * Refuses with `validation_failed` (the key), `idempotency_mismatch` (another call had the key) and `conflict` (the answer does not open).
 */
export function answerOnce(
  platform: Platform,
  call: KeyedCall,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  if (!KEY.test(call.key)) {
    throw invalidFields([
      { path: IDEMPOTENCY_HEADER, message: 'must have 1 to 64 printable ASCII characters' },
    ])
  }
  const request = sha256(JSON.stringify([call.procedure, canonical(call.input)]))
  return unitOfWork(platform.database, async (tx) => {
    const { row, isNew } = await claimKey(platform, tx, call)
    if (!isNew) return { ok: true, data: keptAnswer(platform, row, request) }
    const outcome = await run()
    const own = tx.updateTable('idempotency_keys').where('id', '=', row.id)
    if (outcome.ok) {
      const answer = JSON.stringify({ request, data: outcome.data })
      await own.set({ answer_encrypted: platform.vault.seal(answer, bindingOf(row)) }).execute()
      return outcome
    }
    // What a refusal has changed stays, as without a key: a flag, for example.
    if (ERROR_STATUS[refusalOf(outcome.error, platform.database).code] >= 500) {
      throw outcome.error.cause ?? outcome.error
    }
    await tx.deleteFrom('idempotency_keys').where('id', '=', row.id).execute()
    return outcome
  })
}

/** Adds the key, or finds it after waiting for a call that is under way with it. */
async function claimKey({ clock, ids }: Platform, tx: Tx, { userId: user_id, key }: KeyedCall) {
  const now = clock.now()
  const former = tx.deleteFrom('idempotency_keys').where('user_id', '=', user_id).where('key', '=', key)
  await former.where('created_at', '<=', now - KEPT_MS).execute()
  const row: Row = { id: ids.next(), user_id, key, answer_encrypted: '', created_at: now }
  const added = await tx
    .insertInto('idempotency_keys')
    .values(row)
    .onConflict((conflict) => conflict.columns(['user_id', 'key']).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (added) return { row, isNew: true }
  const known = tx.selectFrom('idempotency_keys').selectAll().where('user_id', '=', user_id)
  const found = await known.where('key', '=', key).executeTakeFirst()
  if (!found) throw new WriteConflict('an idempotency key')
  return { row: found, isNew: false }
}

function keptAnswer({ vault }: Platform, row: Row, request: string): unknown {
  let kept: { request: string; data?: unknown }
  try {
    kept = JSON.parse(vault.open(row.answer_encrypted, bindingOf(row)))
  } catch (error) {
    if (!(error instanceof IntegrityError || error instanceof UnknownKeyError)) throw error
    throw new Refusal(
      'conflict',
      'The first call with this Idempotency-Key succeeded, and its answer cannot be opened. Look for what it made.',
      { internalDetail: `idempotency key ${row.id} ${error.message}` },
    )
  }
  if (kept.request === request) return kept.data
  const detail = 'Another call was made with this Idempotency-Key. Use a new key for each call.'
  throw new Refusal('idempotency_mismatch', detail)
}

function bindingOf({ id, user_id, key, created_at }: Row): Binding {
  return { purpose: 'idempotency_key.answer', row: id, owner: user_id, facts: [key, created_at] }
}

/** With the fields of objects in order. What is nested too deeply for any input is left out: the schema refuses it. */
function canonical(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return null
  if (Array.isArray(value)) return value.map((one) => canonical(one, depth + 1))
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return fields.map(([name, one]) => [name, canonical(one, depth + 1)])
}

/** Removes answers that are no longer given. */
export function removeOldAnswers({ database, clock }: Platform): Promise<void> {
  return database.transaction(async (tx) => {
    await tx
      .deleteFrom('idempotency_keys')
      .where('created_at', '<=', clock.now() - KEPT_MS)
      .execute()
  })
}
