import { randomBytes } from 'node:crypto'
import { sealedTable } from '../../../platform/crypto/sealed-rows.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Platform } from '../../../platform/platform.ts'
import {
  deleteSecrets,
  type EndpointRow,
  insertSecret,
  OWNED_SECRETS,
  type OwnedSecretRow,
  secretsOf,
} from './webhooks.store.ts'

const SECRET_BYTES = 32
/** How long deliveries are also signed with a secret that was replaced, ms. */
const FORMER_SECRET_MS = 24 * 3_600_000
/** How long a repeated rotation is the same one, ms. */
const REPEAT_MS = 60_000
/** Secrets that are valid at the same time, the present one included. */
const MAX_VALID = 3

/** Every endpoint's secrets, for verification and the rotation of keys too. */
export const SEALED_WEBHOOK_SECRETS = sealedTable<OwnedSecretRow, 'secret_encrypted'>({
  name: 'webhook_secrets',
  column: 'secret_encrypted',
  rows: OWNED_SECRETS,
  purpose: 'webhook_endpoint.secret',
  // The expiry is bound too, so that a former secret cannot be made valid again.
  binding: ({ account_id, endpoint_id, valid_until, created_at }) => ({
    owner: account_id,
    facts: [endpoint_id, valid_until, created_at],
  }),
})

type Owner = Pick<EndpointRow, 'id' | 'account_id'>

/** Makes a new secret and returns it, as Standard Webhooks writes it: 32 random bytes. */
export async function createSecret(platform: Platform, tx: Tx, endpoint: Owner): Promise<string> {
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
  await addSecret(platform, tx, endpoint, secret, {
    id: platform.ids.next(),
    valid_until: null,
    created_at: platform.clock.now(),
  })
  return secret
}

async function addSecret(
  { vault }: Platform,
  tx: Tx,
  { id: endpoint_id, account_id }: Owner,
  secret: string,
  { id, valid_until, created_at }: Pick<OwnedSecretRow, 'id' | 'valid_until' | 'created_at'>,
): Promise<void> {
  const row = { id, endpoint_id, valid_until, created_at }
  const sealed = SEALED_WEBHOOK_SECRETS.seal(vault, { ...row, account_id }, secret)
  await insertSecret(tx, { ...row, ...sealed })
}

/**
 * Makes a new secret and returns it. The present one stays valid for 24 hours, as does the newest of the former ones: at most
 * three are valid. Within a minute after a rotation, a repeat returns the same secret, so that a retried request is harmless. Secrets that
 * cannot be opened end. The caller has locked the endpoint.
 */
export async function replaceSecret(platform: Platform, tx: Tx, endpoint: Owner): Promise<string> {
  const now = platform.clock.now()
  const opened = openValidSecrets(platform, await secretsOf(tx, [endpoint.id]))
  const [present, replaced] = opened
  const isRotated = replaced?.row.valid_until === (present?.row.created_at ?? 0) + FORMER_SECRET_MS
  if (present && isRotated && now - present.row.created_at < REPEAT_MS) return present.text
  await deleteSecrets(tx, endpoint.id)
  for (const { row, text } of opened.slice(0, MAX_VALID - 1)) {
    const valid_until = row.valid_until ?? now + FORMER_SECRET_MS
    await addSecret(platform, tx, endpoint, text, { ...row, valid_until })
  }
  return createSecret(platform, tx, endpoint)
}

/** The valid ones of an endpoint's secrets, the present one first. Leaves out those that cannot be opened, which it logs. */
export function openValidSecrets({ vault, clock, log }: Platform, rows: readonly OwnedSecretRow[]) {
  const now = clock.now()
  const valid = rows.filter(({ valid_until }) => valid_until === null || valid_until > now)
  return valid.flatMap((row) => {
    try {
      return [{ row, text: SEALED_WEBHOOK_SECRETS.open(vault, row) }]
    } catch (error) {
      log.error({ err: error, endpoint: row.endpoint_id, secret: row.id }, 'a webhook secret does not open')
      return []
    }
  })
}
