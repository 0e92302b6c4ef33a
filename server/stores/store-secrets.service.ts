import { DAY_MS } from '../../shared/durations.ts'
import { openFlags, raiseFlag } from '../flags/flags.service.ts'
import { Refusal, tooMany } from '../platform/api/refusal.ts'
import { sealedTable } from '../platform/crypto/sealed-rows.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { RateLimiter } from '../platform/network/rate-limiter.ts'
import type { Platform } from '../platform/platform.ts'
import { lockAccount } from '../users/users.service.ts'
import {
  changeSecret,
  deleteSecrets,
  insertSecret,
  OWNED_SECRETS,
  type OwnedSecretRow,
  type StoreRow,
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

/** Every store's secrets, for verification and the rotation of keys too. */
export const SEALED_SECRETS = sealedTable<OwnedSecretRow, 'secret_encrypted' | 'fingerprint'>({
  name: 'store_secrets',
  column: 'secret_encrypted',
  rows: OWNED_SECRETS,
  purpose: PURPOSE,
  // The expiry is bound too, so that an expired secret cannot be made valid again.
  binding: ({ merchant_id, store_id, shop_domain, valid_until, created_at }) => ({
    owner: merchant_id,
    facts: [store_id, shop_domain, valid_until, created_at],
  }),
  fingerprint: { column: 'fingerprint', purpose: PURPOSE, of: 'secret' },
  async checkReseal(tx, row, { fingerprint }) {
    const holders = await secretsByFingerprint(tx, [fingerprint])
    if (holders.some(({ id }) => id !== row.id)) throw new IntegrityError('is the secret of another row too')
  },
})

/** Makes `secret` the store's present one. Refuses with `secret_taken`, and with `rate_limited` after too many of those. */
export async function addSecret(platform: Platform, tx: Tx, store: StoreRow, secret: string): Promise<void> {
  const { merchant_id, shop_domain } = store
  await refuseSecretGuesses(platform, tx, merchant_id)
  const now = platform.clock.now()
  const holders = await secretsByFingerprint(tx, secretFingerprints(platform, secret))
  for (const { store_id, valid_until } of holders) {
    const expired = valid_until !== null && valid_until <= now
    if (!expired && store_id !== store.id) throw await secretTaken(platform, merchant_id)
  }
  await deleteSecrets(tx, holders)
  const row = { id: platform.ids.next(), store_id: store.id, valid_until: null, created_at: now }
  const sealed = SEALED_SECRETS.seal(platform.vault, { ...row, merchant_id, shop_domain }, secret)
  await insertSecret(tx, { ...row, ...sealed })
}

/** Keeps the present secret valid for 24 hours, or removes it when it cannot be opened. */
export async function retireSecret(platform: Platform, tx: Tx, row: OwnedSecretRow): Promise<void> {
  try {
    const secret = SEALED_SECRETS.open(platform.vault, row)
    const valid_until = platform.clock.now() + FORMER_SECRET_MS
    const sealed = SEALED_SECRETS.seal(platform.vault, { ...row, valid_until }, secret)
    await changeSecret(tx, row.id, { valid_until, ...sealed })
  } catch (error) {
    if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
    if (!(error instanceof IntegrityError)) throw error
    await deleteSecrets(tx, [row])
  }
}

/** Binds a secret to its store's new domain; one that cannot be opened goes. `row` has the former domain. */
export async function resealSecret(
  platform: Platform,
  tx: Tx,
  row: OwnedSecretRow,
  domain: string,
): Promise<void> {
  try {
    const secret = SEALED_SECRETS.open(platform.vault, row)
    await changeSecret(
      tx,
      row.id,
      SEALED_SECRETS.seal(platform.vault, { ...row, shop_domain: domain }, secret),
    )
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
  throw tooMany('Too many webhook secrets that belong to other stores.', standing.resetsIn)
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
  { id: secretId, store_id: storeId }: OwnedSecretRow,
  { message: problem }: IntegrityError,
): Promise<void> {
  const { database, log } = platform
  if ((await openFlags(database.reader, 'integrity_violation', storeId)).length > 0) return
  log.error({ storeId, secretId, problem }, 'store secret refused')
  await database.transaction((tx) =>
    raiseFlag(platform, tx, {
      kind: 'integrity_violation',
      subjectType: 'store',
      subjectId: storeId,
      summary:
        'A webhook secret of this store was changed in the database and is refused. Run "affiliate ledger verify", and have the merchant set the secret again.',
      evidence: { store_secret_id: secretId, problem },
    }),
  )
}

/** The refusal for a secret whose key this process lacks; the log names the key. */
export function keyMissing({ log }: Platform, { message }: UnknownKeyError): Refusal {
  log.error(`a webhook secret was ${message}`)
  const detail = 'The service cannot open the secret of this store now. Try again later.'
  return new Refusal('unavailable', detail, { internalDetail: message, retryAfter: 60 })
}
