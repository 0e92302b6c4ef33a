import { DAY_MS } from '../../shared/durations.ts'
import { openFlags, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { sealedTable } from '../platform/crypto/sealed-rows.ts'
import { type Binding, IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { RateLimiter } from '../platform/network/rate-limiter.ts'
import type { Platform } from '../platform/platform.ts'
import { lockAccount } from '../users/users.service.ts'
import {
  ALL_SECRETS,
  deleteSecrets,
  insertSecret,
  type OwnedSecretRow,
  replaceSecret,
  type StoreRow,
  type StoreSecretRow,
  secretsByFingerprint,
} from './stores.store.ts'

/** What the column and its fingerprints are sealed for. */
const PURPOSE = 'store.webhook_secret'
/** How long a store may sign with a secret that was replaced. */
const FORMER_SECRET_MS = DAY_MS
/** `secret_taken` answers to one account in an hour: each confirms a guess at another store's secret. */
export const MAX_SECRETS_TAKEN = 5

/** The fingerprints that this secret may have in the database, the present key's first. */
export function secretFingerprints({ vault }: Platform, secret: string): string[] {
  return vault.fingerprints(secret, PURPOSE)
}

/** A secret's row, sealed for its store and for its `valid_until`, so that an expired secret cannot be made valid again. */
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

/** Opens a store's secret. Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
export function openSecret({ vault }: Pick<Platform, 'vault'>, store: Owner, row: StoreSecretRow): string {
  const secret = vault.open(row.secret_encrypted, bindingOf(store, row))
  if (!vault.fingerprints(secret, PURPOSE).includes(row.fingerprint)) {
    throw new IntegrityError('has the fingerprint of another secret')
  }
  return secret
}

/** Every store's secrets, for verification and the rotation of keys. */
export const SEALED_SECRETS = sealedTable<OwnedSecretRow>({
  name: 'store_secrets',
  column: 'secret_encrypted',
  rows: ALL_SECRETS,
  open: (vault, row) => openSecret({ vault }, ownerOf(row), row),
  seal(vault, row, secret) {
    const { secret_encrypted, fingerprint } = sealSecret({ vault }, ownerOf(row), row, secret)
    return { secret_encrypted, fingerprint }
  },
  async checkReseal(tx, row, { fingerprint = '' }) {
    const holders = await secretsByFingerprint(tx, [fingerprint])
    if (holders.some(({ id }) => id !== row.id)) throw new IntegrityError('is the secret of another row too')
  },
})

function ownerOf({ store_id, merchant_id, shop_domain }: OwnedSecretRow): Owner {
  return { id: store_id, merchant_id, shop_domain }
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

/** Makes `secret` the store's present one. Refuses with `secret_taken`, and with `rate_limited` after too many of those. */
export async function addSecret(platform: Platform, tx: Tx, store: StoreRow, secret: string): Promise<void> {
  await refuseSecretGuesses(platform, tx, store.merchant_id)
  const now = platform.clock.now()
  const holders = await secretsByFingerprint(tx, secretFingerprints(platform, secret))
  for (const holder of holders) {
    const expired = holder.valid_until !== null && holder.valid_until <= now
    if (!expired && holder.store_id !== store.id) throw await secretTaken(platform, store.merchant_id)
  }
  await deleteSecrets(tx, holders)
  const row = { id: platform.ids.next(), store_id: store.id, valid_until: null, created_at: now }
  await insertSecret(tx, sealSecret(platform, store, row, secret))
}

/** Keeps the present secret valid for 24 hours, or removes it when it cannot be opened. */
export async function retireSecret(
  platform: Platform,
  tx: Tx,
  store: StoreRow,
  row: StoreSecretRow,
): Promise<void> {
  try {
    const secret = openSecret(platform, store, row)
    const validUntil = platform.clock.now() + FORMER_SECRET_MS
    await replaceSecret(tx, sealSecret(platform, store, { ...row, valid_until: validUntil }, secret))
  } catch (error) {
    if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
    if (!(error instanceof IntegrityError)) throw error
    await deleteSecrets(tx, [row])
  }
}

/**
 * Call before a secret is compared with other stores' secrets. Refuses with `rate_limited` when the account has been
 * answered `secret_taken` too often, whether or not this secret is taken.
 */
async function refuseSecretGuesses(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  await lockAccount(tx, merchantId)
  const standing = await limiterOf(platform).peek(merchantId)
  if (!standing?.exceeded) return
  const minutes = Math.ceil(standing.resetsIn / 60)
  throw new Refusal(
    'rate_limited',
    `Too many webhook secrets that belong to other stores. Try again in ${minutes === 1 ? '1 minute' : `${minutes} minutes`}.`,
    { retryAfter: standing.resetsIn },
  )
}

/** The refusal `secret_taken`, counted against the account. */
export async function secretTaken(platform: Platform, merchantId: string): Promise<Refusal> {
  await limiterOf(platform).consume(merchantId)
  return new Refusal(
    'secret_taken',
    'This webhook secret belongs to another store. Each store needs its own.',
  )
}

const limiters = new WeakMap<Platform, RateLimiter>()

function limiterOf(platform: Platform): RateLimiter {
  const limiter = limiters.get(platform) ?? new RateLimiter({ points: MAX_SECRETS_TAKEN, seconds: 3600 })
  limiters.set(platform, limiter)
  return limiter
}

/** Flags a store whose secret cannot be opened, once. Its other secrets stay in use. */
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

/** The refusal for a secret whose key this process lacks; the log names the key. */
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
