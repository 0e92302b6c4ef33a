import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { z } from 'zod'
import { HOUR_MS } from '../../shared/durations.ts'
import type { Head } from '../ledger/chain.rule.ts'
import { lastSeal } from '../ledger/seals/seals.service.ts'
import { createVault, IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Database, Queries } from '../platform/database/database.ts'
import { readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { timeOfId } from '../platform/ids.ts'
import type { Covered } from './scope.ts'
import type { Books } from './verify-books.ts'

/*
 * What the last successful verification has covered. It is sealed with APP_KEY, so a writer to the
 * database without that key can only delete it, or restore an older one; both make the next verification check more.
 */

const NAME = 'verified'
const BINDING = { purpose: 'verified mark', row: NAME, owner: '', facts: [] }
/** Ids of a row and of its transaction's commit may be this far apart, and so may the clocks of two machines, ms. */
const MARGIN_MS = HOUR_MS

const contents = z.object({
  seal: z.object({ position: z.int(), digest: z.string() }),
  /** SHA-256 of where each ledger ended at that seal. */
  heads: z.string(),
  before: z.int(),
  verifiedAt: z.int(),
})

export interface VerifiedMark {
  covered: Covered
  /** Epoch ms. */
  verifiedAt: number
  /** Epoch ms. */
  sealedAt: number
}

/** The mark; `null` without one; a text that says why a stored mark cannot be used. */
export async function readVerifiedMark({ database, keys }: Books): Promise<VerifiedMark | string | null> {
  const db = database.reader
  const value = await readWatermark(db, NAME)
  if (value === undefined) return null
  try {
    const mark = contents.parse(JSON.parse(createVault(keys).open(value, BINDING)))
    const { seal, before, verifiedAt } = mark
    const stored = await db
      .selectFrom('ledger_seals')
      .select(['digest', 'sealed_at'])
      .where('position', '=', seal.position)
      .executeTakeFirst()
    if (stored?.digest !== seal.digest)
      return `seal ${seal.position}, on which it rests, is missing or was changed`
    const heads = await headsAt(db, seal.position)
    if (digestOf(heads) !== mark.heads)
      return `the ledger ends of seal ${seal.position} or of an earlier one were changed`
    const decidedAgain = await readDecidedAgain(db, before)
    return { covered: { seal, heads, before, decidedAgain }, verifiedAt, sealedAt: stored.sealed_at }
  } catch (error) {
    if (error instanceof UnknownKeyError)
      return 'it was made with a key that is not in APP_KEY or APP_KEYS_FORMER'
    if (error instanceof IntegrityError) return 'it was changed, or copied from another database'
    throw error
  }
}

async function readDecidedAgain(db: Queries, since: number): Promise<Covered['decidedAgain']> {
  const rows = await db
    .selectFrom('sale_decisions as former')
    .innerJoin('sales as sale', 'sale.id', 'former.sale_id')
    .select(['sale.id', 'sale.event_id', 'former.event_id as former_event_id'])
    .where('sale.decided_at', '>=', since)
    .execute()
  return {
    sales: rows.map(({ id }) => id),
    events: rows.flatMap((row) => [row.event_id, row.former_event_id]),
  }
}

/** What a verification covers that begins `now` (epoch ms), as a text to store once it has succeeded; `null` while nothing is sealed. */
export async function prepareVerifiedMark({ database, keys }: Books, now: number): Promise<string | null> {
  const db = database.reader
  const seal = await lastSeal(db)
  if (!seal) return null
  const { rows } = await sql<{ id: string | null }>`
    select min(cast(id as text)) as id from inbound_events where state = 'pending'`.execute(db)
  const pending = rows[0]?.id
  const before = Math.min(now, pending ? timeOfId(pending) : now) - MARGIN_MS
  const { position, digest } = seal
  const heads = digestOf(await headsAt(db, position))
  return createVault(keys).seal(
    JSON.stringify({ seal: { position, digest }, heads, before, verifiedAt: now }),
    BINDING,
  )
}

export async function storeVerifiedMark(database: Database, value: string): Promise<void> {
  await database.transaction((tx) => setWatermark(tx, NAME, value))
}

/** Where each ledger ended at a seal: its end at the newest seal up to that one that has it. */
async function headsAt(db: Queries, position: number): Promise<Head[]> {
  const { rows } = await sql<Head>`
    select head.ledger_id as "ledgerId", head.sequence, head.hash
    from ledger_seal_heads as head
    join (
      select ledger_id, max(position) as position from ledger_seal_heads
      where position <= ${position} group by ledger_id
    ) as last on last.ledger_id = head.ledger_id and last.position = head.position
    order by head.ledger_id`.execute(db)
  return rows
}

function digestOf(heads: readonly Head[]): string {
  const hash = createHash('sha256')
  for (const { ledgerId, sequence, hash: end } of heads) hash.update(`${ledgerId} ${sequence} ${end}\n`)
  return hash.digest('hex')
}
