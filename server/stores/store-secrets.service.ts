import { openFlags, raiseFlag } from '../moderation/flags.service.ts'
import type { Queries, Tx } from '../platform/database.ts'
import { openSealed } from '../platform/key-mark.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import type { SealedTable } from '../platform/sealed-rows.ts'
import { type Binding, IntegrityError, type UnknownKeyError } from '../platform/vault.ts'
import {
  replaceSecret,
  type StoreRow,
  type StoreSecretRow,
  secretsAfter,
  secretsByFingerprint,
} from './stores.store.ts'

/** The column's purpose, and the fingerprints'. */
const PURPOSE = 'store.webhook_secret'

/** The fingerprints that equal secrets may have in the database, the present one first. */
export function secretFingerprints({ vault }: Platform, secret: string): string[] {
  return vault.fingerprints(secret, PURPOSE)
}

/** A secret's row, sealed for its store; `valid_until` is sealed with it, so that no former secret can be revived. */
export function sealSecret(
  { vault }: Pick<Platform, 'vault'>,
  store: Owner,
  row: Omit<StoreSecretRow, 'secret_encrypted' | 'fingerprint'>,
  secret: string,
): StoreSecretRow {
  return {
    ...row,
    secret_encrypted: vault.seal(secret, bindingOf(store, row)),
    fingerprint: vault.fingerprint(secret, PURPOSE),
  }
}

/** Opens a store's secret. Throws `IntegrityError` when the row is not as it was written, and `UnknownKeyError`. */
export async function openSecret(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries | Tx,
  store: Owner,
  row: StoreSecretRow,
): Promise<string> {
  const secret = await openSealed(db, vault, row.secret_encrypted, bindingOf(store, row))
  if (!vault.fingerprints(secret, PURPOSE).includes(row.fingerprint)) {
    throw new IntegrityError('has the fingerprint of another secret')
  }
  return secret
}

/** Every store's secrets, for verification and the rotation of keys. */
export const SEALED_SECRETS: SealedTable = {
  name: 'store_secrets',
  column: 'secret_encrypted',
  async page(db, vault, after, limit) {
    const rows = await secretsAfter(db, after, limit)
    return rows.map(({ merchant_id, shop_domain, ...row }) => {
      const store = { id: row.store_id, merchant_id, shop_domain }
      return {
        id: row.id,
        sealed: row.secret_encrypted,
        open: () => openSecret({ vault }, db, store, row),
        async reseal(tx, secret) {
          const renewed = sealSecret({ vault }, store, row, secret)
          const holders = await secretsByFingerprint(tx, [renewed.fingerprint])
          if (holders.some((holder) => holder.id !== row.id)) {
            throw new IntegrityError('is the secret of another row too')
          }
          return replaceSecret(tx, row.secret_encrypted, renewed)
        },
      }
    })
  },
}

type Owner = Pick<StoreRow, 'id' | 'merchant_id' | 'shop_domain'>

function bindingOf(store: Owner, row: Omit<StoreSecretRow, 'secret_encrypted' | 'fingerprint'>): Binding {
  return {
    purpose: PURPOSE,
    row: row.id,
    owner: store.merchant_id,
    facts: [row.store_id, store.id, store.shop_domain, row.valid_until, row.created_at],
  }
}

/** Flags a store whose secret does not open, once; its other secrets go on working. */
export async function flagBrokenSecret(
  platform: Platform,
  store: StoreRow,
  row: StoreSecretRow,
  problem: IntegrityError,
): Promise<void> {
  if ((await openFlags(platform.database.reader, 'integrity_violation', store.id)).length > 0) return
  platform.log.error(
    { storeId: store.id, secretId: row.id, problem: problem.message },
    'store secret refused',
  )
  await platform.database.transaction((tx) =>
    raiseFlag(platform, tx, {
      kind: 'integrity_violation',
      subjectType: 'store',
      subjectId: store.id,
      summary:
        'A webhook secret of this store was changed in the database and is refused. Run "affiliate ledger verify", and have the merchant set the secret again.',
      evidence: { store_secret_id: row.id, problem: problem.message },
    }),
  )
}

/** Senders try again later, and so do merchants; the operator reads in the log which key is missing. */
export function keyMissing(platform: Platform, { message }: UnknownKeyError): Refusal {
  platform.log.error(`a webhook secret was ${message}`)
  return new Refusal(
    'unavailable',
    'The service cannot open the secret of this store now. Try again later.',
    {
      internalDetail: message,
      retryAfter: 60,
    },
  )
}
