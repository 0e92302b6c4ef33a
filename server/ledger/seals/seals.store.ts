import { type Queries, type Tx, WriteConflict } from '../../platform/database/database.ts'
import { insertRowsIfNew, type NewRow } from '../../platform/database/protected-rows.ts'
import type { Head } from '../chain.rule.ts'

/** Each row takes four parameters; SQLite takes 32,766 a statement. */
const ROWS_AT_ONCE = 2000

export interface Seal {
  position: number
  /** Epoch ms. */
  sealedAt: number
  digest: string
}

/** The newest seal; with `before` (epoch ms) the newest that was made earlier. `null` without one. */
export async function lastSeal(db: Queries, before: number | null = null): Promise<Seal | null> {
  const seal = await seals(db)
    .$if(before !== null, (query) => query.where('sealed_at', '<', before ?? 0))
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirst()
  return seal ?? null
}

export function findSeal(db: Queries, position: number): Promise<Seal | undefined> {
  return seals(db).where('position', '=', position).executeTakeFirst()
}

function seals(db: Queries) {
  return db.selectFrom('ledger_seals').select(['position', 'sealed_at as sealedAt', 'digest'])
}

/** The positions of the seals that retired a key, by its id. */
export async function retiredKeys(db: Queries): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('ledger_seals')
    .select(['position', 'retires'])
    .where('retires', 'is not', null)
    .execute()
  return new Map(rows.map(({ position, retires }) => [retires ?? '', position]))
}

/** The heads of all ledgers that have entries, by ledger id. */
export function findAllHeads(db: Queries): Promise<Head[]> {
  return db
    .selectFrom('ledger_heads')
    .select(['ledger_id as ledgerId', 'sequence', 'hash'])
    .where('sequence', '>', 0)
    .orderBy('ledger_id')
    .execute()
}

/** The heads of ledgers that moved since they were last sealed, by ledger id. */
export function findUnsealedHeads(db: Queries): Promise<Head[]> {
  return db
    .selectFrom('ledger_heads as head')
    .select(['head.ledger_id as ledgerId', 'head.sequence', 'head.hash'])
    .where('head.sequence', '>', 0)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('ledger_seal_heads as sealed')
            .select('sealed.position')
            .whereRef('sealed.ledger_id', '=', 'head.ledger_id')
            .whereRef('sealed.sequence', '=', 'head.sequence'),
        ),
      ),
    )
    .orderBy('head.ledger_id')
    .execute()
}

/** Adds a seal. Throws `WriteConflict` when another sealer took its position. */
export async function insertSeal(
  tx: Tx,
  seal: NewRow<'ledger_seals'>,
  heads: readonly Head[],
): Promise<void> {
  const added = await insertRowsIfNew(tx, 'ledger_seals', [seal])
  if (added.length === 0) throw new WriteConflict('a seal was set')
  for (let at = 0; at < heads.length; at += ROWS_AT_ONCE) {
    const rows = heads.slice(at, at + ROWS_AT_ONCE).map(({ ledgerId, sequence, hash }) => ({
      position: seal.position,
      ledger_id: ledgerId,
      sequence,
      hash,
    }))
    await tx.insertInto('ledger_seal_heads').values(rows).execute()
  }
}
